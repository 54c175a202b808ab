"""Writes everything that is generated: `python -m sickbay.cli.generate [ROOT]`.

ROOT is the repository (= the current folder). Beside the files of `sickbay.api.generate` (CRDs, docs/api.md) these are
docs/defaults.md, docs/commands.md and docs/waits.md, which need to know all of the product.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sickbay.api import generate
from sickbay.cli.docgen import commands, defaults, waits

DEFAULTS = Path("docs/defaults.md")
COMMANDS = Path("docs/commands.md")
WAITS = Path("docs/waits.md")


def pages() -> dict[Path, str]:
    """The pages of this generator, by their path below the root."""
    return {DEFAULTS: defaults.markdown(), COMMANDS: commands.markdown(), WAITS: waits.markdown()}


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for path, text in {**generate.generated(root), **pages()}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


if __name__ == "__main__":
    main()
