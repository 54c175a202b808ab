"""A kind made up of everything a structural schema can say, and what a server makes of its objects.

One table for our own functions and for a real API server: a spec is stored as `stored`, or refused at `paths`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


def rule(text: str, message: str = "", **more: Any) -> Json:
    return {"rule": text, **({"message": message} if message else {}), **more}


SPEC: Json = {
    "type": "object",
    "properties": {
        "small": {"type": "integer", "format": "int32", "minimum": 2, "maximum": 8, "multipleOf": 2},
        "open": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
        "word": {"type": "string", "enum": ["a", "b"], "default": "a"},
        "level": {"type": "integer", "enum": [1, 2]},
        "text": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-zé]+$"},
        "part": {"type": "string", "pattern": "x"},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "span": {"type": "string", "format": "duration"},
        "blob": {"type": "string", "format": "byte"},
        "id": {"type": "string", "format": "uuid"},
        "v4": {"type": "string", "format": "ipv4"},
        "v6": {"type": "string", "format": "ipv6"},
        "odd": {"type": "string", "format": "unheard-of"},
        "share": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$", "maximum": 9},
        "maybe": {"type": "string", "nullable": True},
        "maybeDefault": {"type": "string", "nullable": True, "default": "d"},
        "notNull": {"type": "string", "default": "d"},
        "set": {"type": "array", "maxItems": 3, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "maxItems": 4,
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "name": {"type": "string", "maxLength": 8},
                },
                "x-kubernetes-validations": [
                    rule("!has(oldSelf.name) || self.name == oldSelf.name", "a port keeps its name", fieldPath=".name")
                ],
            },
        },
        "plain": {
            "type": "array",
            "minItems": 1,
            "maxItems": 4,
            "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}},
        },
        "map": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 2,
            "additionalProperties": {
                "type": "object",
                "required": ["x"],
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 5}},
            },
        },
        "texts": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        "nested": {
            "type": "object",
            "default": {},
            "properties": {
                "deep": {
                    "type": "object",
                    "default": {"a": 7},
                    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
                },
                "lazy": {"type": "object", "properties": {"c": {"type": "integer", "default": 3}}},
            },
        },
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"k": {"type": "string"}}}},
        },
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object", "properties": {"s": {"type": "string"}}}},
        },
        "choice": {
            "type": "object",
            "properties": {"one": {"type": "string"}, "two": {"type": "string"}, "three": {"type": "string"}},
            "oneOf": [{"required": ["one"]}, {"required": ["two"]}],
            "not": {"required": ["three"]},
        },
        "any": {"type": "integer", "anyOf": [{"maximum": 3}, {"minimum": 7}], "allOf": [{"multipleOf": 3}]},
        "for": {"type": "string", "maxLength": 8},
        "namespace": {"type": "string", "maxLength": 8},
        "a-b": {"type": "integer"},
        "x__y": {"type": "integer"},
        "sealed": {"type": "string", "maxLength": 8, "x-kubernetes-validations": [rule("self == oldSelf", "sealed")]},
        "first": {
            "type": "string",
            "maxLength": 8,
            "x-kubernetes-validations": [
                rule("oldSelf.hasValue() || self == 'new'", "begins as new", optionalOldSelf=True)
            ],
        },
        "said": {
            "type": "integer",
            "x-kubernetes-validations": [
                rule("self < 10", "fallback", messageExpression="'%d is not below 10'.format([self])")
            ],
        },
        "mute": {"type": "integer", "x-kubernetes-validations": [rule("self < 10")]},
        "forbidden": {
            "type": "integer",
            "x-kubernetes-validations": [rule("self < 10", "not allowed", reason="FieldValueForbidden")],
        },
        "tags": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string", "maxLength": 8}},
    },
    "x-kubernetes-validations": [
        rule("!has(self.__for__) || self.__for__ != 'ever'", "not for ever", fieldPath=".for"),
        rule("!has(self.__namespace__) || self.__namespace__ != 'x'", "not x"),
        rule("!has(self.a__dash__b) || self.a__dash__b == self.x__underscores__y", "a-b is x__y"),
        rule("!has(self.tags) || self.tags.all(k, k.startsWith('t'))", "tags begin with t"),
    ],
}

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": SPEC,
    },
    "x-kubernetes-validations": [rule("self.metadata.name != 'bad-name'", "that is a bad name")],
}

CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.test.sickbay.dev"},
    "spec": {
        "group": "test.sickbay.dev",
        "scope": "Cluster",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}

ALWAYS: Json = {
    "word": "a",
    "maybeDefault": "d",
    "notNull": "d",
    "nested": {"deep": {"a": 7, "b": 2}},
}
"""What defaulting puts into an empty spec."""


@dataclass(frozen=True)
class Case:
    """A spec, and what becomes of it: `stored` beside ALWAYS, or refused at `paths`. With `old`, it is an update."""

    id: str
    spec: Json
    stored: Json | None = None
    paths: tuple[str, ...] = ()
    old: Json | None = None
    name: str = ""
    worded: bool = True
    """False where the server's parser of schemas words its refusal in a way of its own: then only refusing counts."""


def widget(name: str, spec: Json) -> Json:
    return {"apiVersion": "test.sickbay.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def kept(id_: str, spec: Json, old: Json | None = None) -> Case:
    return Case(id_, spec, stored=spec, old=old)


def refused(id_: str, spec: Json, *paths: str, old: Json | None = None, worded: bool = True) -> Case:
    return Case(id_, spec, paths=paths, old=old, worded=worded)


PORTS = [{"port": 1, "protocol": "TCP", "name": "a"}]

CASES: tuple[Case, ...] = (
    kept("empty", {}),
    kept("numbers", {"small": 4, "open": 0.5, "level": 1}),
    refused("below", {"small": 0}, "spec.small"),
    refused("above", {"small": 10}, "spec.small"),
    refused("no-multiple", {"small": 3}, "spec.small"),
    refused("on-the-open-end", {"open": 0}, "spec.open"),
    refused("on-the-other-open-end", {"open": 1}, "spec.open"),
    refused("no-integer", {"small": 4.5}, "spec.small", worded=False),
    Case("whole-float", {"level": 1.0}, stored={"level": 1}),
    refused("boolean-for-integer", {"small": True}, "spec.small", worded=False),
    refused("text-for-integer", {"small": "4"}, "spec.small"),
    refused("unknown-word", {"word": "c"}, "spec.word"),
    refused("unknown-number", {"level": 3}, "spec.level"),
    kept("text", {"text": "éé"}),
    refused("too-short", {"text": "a"}, "spec.text"),
    refused("too-long", {"text": "aaaaa"}, "spec.text"),
    refused("no-match", {"text": "AB"}, "spec.text"),
    refused("line-break-after-the-end", {"text": "ab\n"}, "spec.text"),
    kept("pattern-anywhere", {"part": "axb"}),
    refused("pattern-nowhere", {"part": "ab"}, "spec.part"),
    kept("time", {"when": "2026-11-29T12:00:00Z"}),
    kept("time-with-fraction-and-zone", {"when": "2026-11-29T12:00:00.123456789+08:00"}),
    refused("time-without-zone", {"when": "2026-11-29T12:00:00"}, "spec.when"),
    refused("time-in-words", {"when": "noon"}, "spec.when"),
    refused("time-that-is-none", {"when": "2026-13-29T12:00:00Z"}, "spec.when"),
    kept("day", {"day": "2026-11-29"}),
    refused("no-day", {"day": "2026-11-31"}, "spec.day"),
    kept("span", {"span": "1h30m"}),
    refused("no-span", {"span": "1 fortnight"}, "spec.span"),
    kept("blob", {"blob": "aGk="}),
    refused("no-blob", {"blob": "a?"}, "spec.blob"),
    kept("uuid", {"id": "0b1c2d3e-0000-4000-8000-000000000001"}),
    refused("no-uuid", {"id": "0b1c"}, "spec.id"),
    kept("addresses", {"v4": "10.0.0.1", "v6": "::1"}),
    refused("no-addresses", {"v4": "10.0.0.256", "v6": "10.0.0.1"}, "spec.v4", "spec.v6"),
    kept("unknown-format", {"odd": "anything"}),
    kept("share-as-number", {"share": 9}),
    kept("share-as-text", {"share": "900%"}),
    refused("share-too-large", {"share": 10}, "spec.share"),
    refused("share-in-words", {"share": "half"}, "spec.share"),
    refused("share-of-neither", {"share": True}, "spec.share"),
    kept("null-allowed", {"maybe": None, "maybeDefault": None}),
    Case("null-becomes-default", {"notNull": None}, stored={"notNull": "d"}),
    Case("null-goes", {"text": None, "ports": None, "plain": None}, stored={}),
    Case("null-deep-down", {"nested": {"deep": None, "lazy": None}}, stored={"nested": {"deep": {"a": 7, "b": 2}}}),
    kept("set", {"set": ["a", "b"]}),
    refused("set-with-twins", {"set": ["a", "b", "a"]}, "spec.set[2]"),
    refused("set-too-long", {"set": ["a", "b", "c", "d"]}, "spec.set"),
    Case(
        "map-list-with-default-key",
        {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]},
        stored={"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]},
    ),
    refused("map-list-with-twins", {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}, "spec.ports[1]"),
    refused("map-list-without-key", {"ports": [{"name": "a"}]}, "spec.ports[0].port"),
    Case("items-defaulted", {"plain": [{}, {"n": 2}]}, stored={"plain": [{"n": 1}, {"n": 2}]}),
    refused("too-few-items", {"plain": []}, "spec.plain"),
    refused("item-of-wrong-type", {"plain": ["x"]}, "spec.plain[0]"),
    Case("map-values-defaulted", {"map": {"k": {"x": 1}}}, stored={"map": {"k": {"x": 1, "y": 5}}}),
    refused("map-value-incomplete", {"map": {"k": {}}}, "spec.map.k.x"),
    refused("too-many-keys", {"map": {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}}, "spec.map"),
    refused("too-few-keys", {"map": {}}, "spec.map"),
    refused("map-text-too-long", {"texts": {"k": "four"}}, "spec.texts.k"),
    Case(
        "unknown-goes",
        {"unknown": 1, "nested": {"deep": {"a": 1, "z": 2}}},
        stored={"nested": {"deep": {"a": 1, "b": 2}}},
    ),
    Case(
        "object-defaulted-where-it-is",
        {"nested": {"lazy": {}}},
        stored={"nested": {"deep": {"a": 7, "b": 2}, "lazy": {"c": 3}}},
    ),
    Case(
        "unknown-stays-where-allowed",
        {"free": {"any": {"thing": [1]}, "known": {"k": "v", "goes": 1}}},
        stored={"free": {"any": {"thing": [1]}, "known": {"k": "v"}}},
    ),
    Case(
        "embedded-resource",
        {"embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": {"s": "a", "z": 1}, "z": 1}},
        stored={"embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": {"s": "a"}}},
    ),
    kept("one-of", {"choice": {"one": "x"}}),
    refused("none-of", {"choice": {}}, "spec.choice", worded=False),
    refused("both-of", {"choice": {"one": "x", "two": "y"}}, "spec.choice", worded=False),
    refused("what-must-not", {"choice": {"one": "x", "three": "z"}}, "spec.choice", worded=False),
    kept("any-of", {"any": 9}),
    refused("outside-any-of", {"any": 6}, "spec.any", worded=False),
    refused("outside-all-of", {"any": 7}, "spec.any", worded=False),
    kept("reserved-words", {"for": "now", "namespace": "y", "a-b": 1, "x__y": 1}),
    refused("rule-on-reserved-word", {"for": "ever"}, "spec.for"),
    refused("rule-on-namespace", {"namespace": "x"}, "spec"),
    refused("rule-on-escaped-names", {"a-b": 1, "x__y": 2}, "spec"),
    refused("rule-without-value", {"a-b": 1}, "spec"),
    refused("rule-on-map-keys", {"tags": {"x": "y"}}, "spec"),
    refused("rule-says-itself", {"said": 11}, "spec.said"),
    refused("rule-says-nothing", {"mute": 11}, "spec.mute"),
    refused("rule-with-reason", {"forbidden": 11}, "spec.forbidden"),
    refused("rules-wait-for-required", {"ports": [{}], "said": 11}, "spec.ports[0].port", "<nil>"),
    kept("sealed-at-first", {"sealed": "a"}),
    kept("sealed-unchanged", {"sealed": "a", "level": 1}, old={"sealed": "a"}),
    refused("sealed-changed", {"sealed": "b"}, "spec.sealed", old={"sealed": "a"}),
    kept("sealed-added", {"sealed": "b"}, old={}),
    kept("begins-as-new", {"first": "new"}),
    refused("begins-otherwise", {"first": "old"}, "spec.first"),
    kept("goes-on-otherwise", {"first": "old"}, old={"first": "new"}),
    kept("port-keeps-name", {"ports": [{"port": 2, "protocol": "TCP", "name": "z"}, *PORTS]}, old={"ports": PORTS}),
    refused(
        "port-renamed",
        {"ports": [{"port": 2, "protocol": "TCP"}, {"port": 1, "protocol": "TCP", "name": "b"}]},
        "spec.ports[1].name",
        old={"ports": PORTS},
    ),
    Case("bad-name", {}, paths=("<nil>",), name="bad-name"),
)
