"""Regular expressions that people bring: RE2, so that matching takes time in proportion to the text.

The engine of the standard library backtracks: `^([A-Za-z]+)+$` on forty letters and a digit keeps it busy for longer
than a process lives, and with it every release of a node. RE2 (https://github.com/google/re2/wiki/Syntax) has neither
look-around nor back-references, which is what makes that impossible. It comes with the CEL library, as `matches`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from sickbay.api.cel import CelError, Program

REMEDY = "correct it; the syntax is that of RE2, without look-around and back-references"
_ANYTHING = ("", "^.*$", ".*")
_PLAIN = re.compile(r"\^([A-Za-z0-9_-]+)\$")
"""`^Word$`, the usual form: a comparison says the same."""
_TELLS = re.compile(r".*invalid regular expression: ", re.DOTALL)


class PatternError(ValueError):
    """Not a regular expression of RE2; the text names the place in it."""


class Pattern:
    """One expression, ready to be searched for in texts (anchors are the author's business)."""

    __slots__ = ("_exact", "_program", "text")

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        self.text = text
        plain = _PLAIN.fullmatch(text)
        self._exact = plain[1] if plain else None
        self._program: Program | None = None
        if plain or text in _ANYTHING:
            return
        try:
            self._program = Program.compile(f"value.matches({json.dumps(text, ensure_ascii=False)})", ["value"])
            self._program.evaluate(value="")  # the library reads the pattern only here
        except CelError as error:
            raise PatternError(_TELLS.sub("", str(error))) from None

    @classmethod
    def compile(cls, text: str) -> Pattern:
        """Compile, or take from the cache. Raises PatternError."""
        return _compile(text)

    def found_in(self, text: str) -> bool:
        """Whether some part of the text matches; a text the engine cannot read shows nothing."""
        if self._exact is not None:
            return text == self._exact
        if self._program is None:
            return True
        try:
            return self._program.evaluate(value=text) is True
        except CelError:
            return False


@lru_cache(maxsize=4096)
def _compile(text: str) -> Pattern:
    return Pattern(text)
