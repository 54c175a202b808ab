"""CEL, the language of fault matches and of the CRDs' rules, with the API server's semantics.

A thin wall around the library: it reports errors as values that read as true, so here every error is a `CelError`, and
nothing that failed can pass for an answer. A key that is absent is an error unless asked for with `has()` or `.?`.
Programs are compiled once per text and set of variables and kept; evaluation is bounded by the library's iteration
budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from sickbay.api.cel_library import kubernetes_functions

_CACHE = 4096
"""Programs kept: more than a large catalogue and all CRD rules together have."""

_STATUS_WORDS = re.compile(r"^[A-Z_]+: (?:ERROR: )?(?:<input>:)?|\s*\[[A-Z_]+\]$")


class CelError(Exception):
    """An expression that does not compile, or that has no value for these variables; the text is for people."""


class Variables:
    """Values of variables, converted once for any number of programs that declare the same names."""

    __slots__ = ("activation", "names", "values")

    def __init__(self, /, **values: Any) -> None:
        """Structs are seen as their JSON. Raises CelError for a value CEL has no type for."""
        self.names = tuple(sorted(values))
        self.values = {name: _plain(value) for name, value in values.items()}
        try:
            self.activation = _environment(self.names).Activation(self.values)
        except (RuntimeError, TypeError, ValueError) as error:
            raise CelError(f"variables {', '.join(self.names)}: {clean(error)}") from None


class Program:
    """A compiled expression."""

    __slots__ = ("_compiled", "names", "text")

    def __init__(self, text: str, names: tuple[str, ...], compiled: Any) -> None:
        self.text = text
        self.names = names
        self._compiled = compiled

    @classmethod
    def compile(cls, text: str, variables: Iterable[str]) -> Program:
        """Compile, or take from the cache. Raises CelError naming the place in the text."""
        return _compile(text, tuple(sorted(variables)))

    @property
    def result(self) -> str:
        """Type of its value as far as the text tells, as CEL names it: bool, int, list<int>, ...; dyn where it does
        not."""
        return str(self._compiled.return_type()).lower()

    def evaluate(self, /, **variables: Any) -> Any:
        """The value as plain Python: bool, int, float, str, bytes, datetime, timedelta, list, dict or None.

        Raises CelError when the expression has no value: an absent key, a wrong type, a variable not given, a runaway.
        """
        return self.evaluate_in(Variables(**variables))

    def evaluate_in(self, variables: Variables) -> Any:
        """The same for variables that several programs share. Raises CelError."""
        if variables.names != self.names:
            raise CelError(f"{self.text!r} is about {', '.join(self.names)}; given: {', '.join(variables.names)}")
        try:
            value = self._compiled.eval(variables.activation)
            if value.type() in (cel.Type.ERROR, cel.Type.UNKNOWN):
                raise CelError(f"{self.text!r}: {clean(value.plain_value())}")
            return value.plain_value()
        except (RuntimeError, TypeError, ValueError) as error:
            raise CelError(f"{self.text!r}: {clean(error)}") from None

    def holds(self, variables: Variables) -> bool:
        """Whether a condition is true. Raises CelError on an error, and for a value that is not a boolean."""
        value = self.evaluate_in(variables)
        if not isinstance(value, bool):
            raise CelError(f"{self.text!r} is {type(value).__name__}, not a boolean")
        return value


@lru_cache(maxsize=_CACHE)
def _compile(text: str, names: tuple[str, ...]) -> Program:
    try:
        return Program(text, names, _environment(names).compile(text))
    except RuntimeError as error:
        raise CelError(f"{text!r} does not compile: {clean(error)}") from None


@lru_cache(maxsize=256)
def _environment(names: tuple[str, ...]) -> Any:
    return cel.NewEnv(variables=dict.fromkeys(names, cel.Type.DYN), extensions=extensions())


def extensions() -> list[Any]:
    """What every environment of ours offers beyond the core language, as the API server does."""
    return [
        ext_math.ExtMath(),
        ext_strings.ExtStrings(),
        ext_optional.ExtOptional(),
        ext_encoders.ExtEncoders(),
        ext_bindings.ExtBindings(),
        kubernetes_functions(),
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if isinstance(value, Mapping) and not isinstance(value, dict):
        return dict(value)
    return value


def clean(error: object) -> str:
    """The library's message on one line, without its status words: `1:4: Syntax error: ...`."""
    if isinstance(error, TypeError) and "to a Python type" in str(error):
        return "its value is an optional: unwrap it with .orValue(...)"
    first = str(error).splitlines()[0] if str(error) else "failed"
    return _STATUS_WORDS.sub("", first)
