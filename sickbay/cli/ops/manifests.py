"""Files of manifests that people give to commands: YAML, or JSON by the file's ending."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from sickbay.api import yamldoc


def documents(file: Path) -> list[Any]:
    """Every document that is not empty. Raises ClickException with file, line and remedy."""
    try:
        text = file.read_text(encoding="utf-8")
        return [json.loads(text, object_pairs_hook=_each_once)] if file.suffix == ".json" else yamldoc.load(text)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{file} is not UTF-8 text; save it as UTF-8") from None
    except yamldoc.BadYamlError as error:
        key = f"{error.key}: " if error.key else ""
        raise click.ClickException(f"{file}:{error.line}: {key}{error.message}") from None
    except json.JSONDecodeError as error:
        raise click.ClickException(f"{file}:{error.lineno}: not JSON: {error.msg}; correct it") from None
    except RecursionError:
        raise click.ClickException(f"{file}: nests too deep, which no manifest does; correct it") from None
    except ValueError as error:
        raise click.ClickException(f"{file}: {error}") from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key}: is given twice in one object; keep one")
        found[key] = value
    return found
