"""Injections into objects of any kind: labels, annotations, manifests, deletions, patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.sim.hand import Refused
from sickbay.sim.scenario.document import Reader, plain
from sickbay.sim.scenario.injections.nodes import ADMIN
from sickbay.sim.scenario.injections.registry import Act, InjectionError, injection
from sickbay.sim.scenario.manifest import read_manifest
from sickbay.sim.world import World


def _marks(args: Reader, word: str, where: str) -> Act:
    if not args.has("object") and "node" in args.mapping:
        nodes = args.names("node")
        several = " (one entry for each node)" * (len(nodes) > 1)
        raise args.error("node", f"unknown key; {word} takes object: Node/{nodes[0]}{several}")
    target, by = args.text("object"), args.text("by", ADMIN)
    args.need("set")
    patch = {"metadata": {where: args.mapping_of_text("set", nulls=True)}}

    def act(world: World) -> None:
        kind, namespace, name = world.resolve(target)
        world.person(by).merge(kind, name, patch, namespace)

    return act


@injection("label")
def label(args: Reader) -> Act:
    return _marks(args, "label", "labels")


@injection("annotate")
def annotate(args: Reader) -> Act:
    return _marks(args, "annotate", "annotations")


def _refusable(args: Reader, act: Act) -> Act:
    """With `refused`, the API server must refuse, with a message that contains the text."""
    if not args.has("refused"):
        return act
    text = args.text("refused")

    def refused(world: World) -> None:
        try:
            act(world)
        except Refused as error:
            if text in error.message:
                return
            raise InjectionError(f"was refused, but without {text!r}: {error.message}") from None
        raise InjectionError(f"was accepted, but should have been refused with {text!r}")

    return refused


@injection("apply")
def apply(args: Reader) -> Act:
    manifest, by = args.nested("manifest"), args.text("by", ADMIN)
    if manifest is None:
        raise args.error("manifest", "is missing")
    body = read_manifest(manifest)
    return _refusable(args, lambda world: world.apply(body, by))


@injection("delete")
def delete(args: Reader) -> Act:
    return _on_object(args, lambda world, kind, namespace, name, by: world.person(by).delete(kind, name, namespace))


@injection("patch")
def patch(args: Reader) -> Act:
    given = args.nested("patch")
    if given is None:
        raise args.error("patch", "is missing")
    body, subresource = plain(given.mapping), args.text("subresource", "")
    return _on_object(
        args,
        lambda world, kind, namespace, name, by: world.person(by).merge(kind, name, body, namespace, subresource),
    )


def _on_object(args: Reader, do: Callable[[World, Any, str, str, str], Any]) -> Act:
    """`object` names it; so may a manifest, of which only the identity counts."""
    by = args.text("by", ADMIN)
    if args.has("object") == args.has("manifest"):
        raise args.error("object", "give either object or manifest")
    if args.has("object"):
        target = args.text("object")
    else:
        manifest = args.nested("manifest")
        assert manifest is not None
        body = read_manifest(manifest)
        meta = body["metadata"]
        target = "/".join(part for part in (body["kind"], meta.get("namespace", ""), meta["name"]) if part)

    def act(world: World) -> None:
        kind, namespace, name = world.resolve(target)
        do(world, kind, namespace, name, by)

    return _refusable(args, act)
