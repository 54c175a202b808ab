"""`sickbay crds`: the manifests of the nine kinds."""

from __future__ import annotations

import sys

import click


@click.command(name="crds")
def crds() -> None:
    """Print the CustomResourceDefinitions as YAML.

    Example: sickbay crds | kubectl apply --server-side -f -
    """
    from sickbay.api.crds import write_yaml

    write_yaml(sys.stdout)
