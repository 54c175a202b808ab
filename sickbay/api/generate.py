"""Writes what is generated from the structs: `python -m sickbay.api.generate [ROOT]`.

ROOT is the repository (= the current folder). Files: deploy/crds/*.yaml and docs/api.md; docs/api-contract.txt is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sickbay.api import crds, reference

CONTRACT = Path("docs/api-contract.txt")
REFERENCE = Path("docs/api.md")
CRDS = Path("deploy/crds")


def generated(root: Path) -> dict[Path, str]:
    """Every generated file with its text, by its path below the root."""
    files = {CRDS / crds.file_name(manifest): crds.to_yaml(manifest) for manifest in crds.manifests()}
    files[REFERENCE] = reference.markdown(contract(root))
    return files


def contract(root: Path) -> list[str]:
    """Lines of the contract file without comments."""
    lines = (root / CONTRACT).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for path, text in generated(root).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


if __name__ == "__main__":
    main()
