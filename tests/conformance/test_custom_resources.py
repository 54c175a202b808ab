"""Custom resources: definitions, pruning, defaulting, validation with CEL, status, selection, columns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conformance.server import TABLE, Answer, Server, seen

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Obj = dict[str, Any]

SPEC_RULES = [
    {"rule": "!has(self.lo) || !has(self.hi) || self.lo <= self.hi", "message": "lo must not exceed hi: swap them"},
    {"rule": "self.size == oldSelf.size", "message": "size is immutable"},
]
SPEC: Obj = {
    "type": "object",
    "required": ["size"],
    "x-kubernetes-validations": SPEC_RULES,
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "lo": {"type": "integer"},
        "hi": {"type": "integer"},
        "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
        "list": {
            "type": "array",
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "string", "default": "dv"}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "share": {"x-kubernetes-int-or-string": True},
        "nest": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
        },
        "at": {"type": "string", "format": "date-time"},
    },
}
STATUS: Obj = {"type": "object", "properties": {"phase": {"type": "string", "default": "P"}, "n": {"type": "integer"}}}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "First", "type": "string", "jsonPath": ".spec.list[0].k"},
    {"name": "B", "type": "string", "jsonPath": '.spec.list[?(@.k=="b")].v'},
    {"name": "All", "type": "string", "jsonPath": ".spec.list[*].k", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


class Things:
    """A custom resource; tests share its definition and have a namespace each."""

    def __init__(self, server: Server, group: str, namespace: str = "default") -> None:
        self.server = server
        self.group = group
        self.definition = f"{DEFINITIONS}/things.{group}"
        self.path = f"/apis/{group}/v1/namespaces/{namespace}/things"

    def manifest(self, *, subresources: bool = True, scale: bool = False) -> Obj:
        version: Obj = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": COLUMNS}
        properties = {"spec": SPEC, "status": STATUS}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": properties}}
        version["selectableFields"] = [{"jsonPath": ".spec.mode"}]
        version["subresources"] = {"status": {}} if subresources else {}
        if scale:
            version["subresources"]["scale"] = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"}
        names = {"plural": "things", "kind": "Thing", "shortNames": ["tg"]}
        spec = {"group": self.group, "scope": "Namespaced", "names": names, "versions": [version]}
        return {"metadata": {"name": f"things.{self.group}"}, "spec": spec}

    async def define(self, **options: bool) -> None:
        answer = await self.server.post(DEFINITIONS, self.manifest(**options))
        assert answer.code in (201, 409), answer.body
        for _ in range(100):
            if (await self.server.get(self.path)).code == 200:
                return
            await asyncio.sleep(0.05)  # noqa: TID251 - the real server establishes a definition in the background
        raise AssertionError("the definition was never established")

    def thing(self, name: str, spec: Any, **fields: Any) -> Obj:
        head = {"apiVersion": f"{self.group}/v1", "kind": "Thing", "metadata": {"name": name}}
        return head | {"spec": spec} | fields

    async def make(self, name: str = "a", **spec: Any) -> str:
        await self.server.made(self.path, self.thing(name, {"size": 1} | spec))
        return f"{self.path}/{name}"

    async def offer(self, query: str = "", **spec: Any) -> Answer:
        return await self.server.post(f"{self.path}{query}", self.thing("offered", {"size": 1} | spec))


@pytest.fixture
async def things(server: Server) -> Things:
    found = Things(server, "shared.example.com", await server.namespace())
    await found.define()
    return found


@pytest.fixture
async def own_things(server: Server) -> Things:
    """Things whose definition is the test's own."""
    return Things(server, f"{server.unique('g')}.example.com")


async def test_a_definition_is_established_and_names_its_kind(server: Server, things: Things) -> None:
    status = (await server.get(things.definition)).body["status"]
    conditions = {entry["type"]: entry["status"] for entry in status["conditions"]}
    assert (conditions["NamesAccepted"], conditions["Established"]) == ("True", "True")
    assert status["acceptedNames"] == {
        "plural": "things",
        "singular": "thing",
        "kind": "Thing",
        "listKind": "ThingList",
        "shortNames": ["tg"],
    }
    assert status["storedVersions"] == ["v1"]


async def test_a_definition_that_contradicts_itself_is_refused(server: Server) -> None:
    things = Things(server, "g.example.com")
    wrong_name = things.manifest()
    wrong_name["metadata"]["name"] = "others.g.example.com"
    wrong_scope = things.manifest()
    wrong_scope["spec"]["scope"] = "Galaxy"
    no_storage = things.manifest()
    no_storage["spec"]["versions"][0]["storage"] = False
    for manifest, field in (
        (wrong_name, "metadata.name"),
        (wrong_scope, "spec.scope"),
        (no_storage, "spec.versions"),
    ):
        answer = await server.post(DEFINITIONS, manifest)
        assert answer.code == 422
        assert field in {cause[1] for cause in answer.causes}


async def test_unknown_fields_are_dropped_and_absent_ones_defaulted(server: Server, things: Things) -> None:
    spec = {"size": 1, "wat": 5, "list": [{"k": "a", "z": 1}, {"k": "b"}], "free": {"x": {"y": 1}}, "nest": None}
    made = await server.made(things.path, things.thing("a", spec, status={"phase": "X"}, other=1))
    assert made["spec"] == {
        "size": 1,
        "mode": "A",
        "list": [{"k": "a", "v": "dv"}, {"k": "b", "v": "dv"}],
        "free": {"x": {"y": 1}},
        "nest": {"a": "x"},
    }
    assert "status" not in made
    assert "other" not in made
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "reason", "field", "message"),
    [
        pytest.param(
            {"size": 11},
            "FieldValueInvalid",
            "spec.size",
            "Invalid value: 11: spec.size in body should be less than or equal to 10",
            id="maximum",
        ),
        pytest.param(
            {"mode": "C"},
            "FieldValueNotSupported",
            "spec.mode",
            'Unsupported value: "C": supported values: "A", "B"',
            id="enum",
        ),
        pytest.param(
            {"size": "1"},
            "FieldValueTypeInvalid",
            "spec.size",
            'Invalid value: "string": spec.size in body must be of type integer: "string"',
            id="type",
        ),
        pytest.param(
            {"name": "abcdef"},
            "FieldValueTooLong",
            "spec.name",
            "Too long: may not be more than 5 bytes",
            id="length",
        ),
        pytest.param(
            {"name": "A"},
            "FieldValueInvalid",
            "spec.name",
            "Invalid value: \"A\": spec.name in body should match '^[a-z]+$'",
            id="pattern",
        ),
        pytest.param(
            {"list": [{}, {}, {}, {}]},
            "FieldValueTooMany",
            "spec.list",
            "Too many: 4: must have at most 3 items",
            id="items",
        ),
        pytest.param(
            {"keyed": [{"k": "a"}, {"k": "a"}]},
            "FieldValueDuplicate",
            "spec.keyed[1]",
            'Duplicate value: {"k":"a"}',
            id="list key",
        ),
        pytest.param(
            {"map": {"a": 1}},
            "FieldValueTypeInvalid",
            "spec.map.a",
            'Invalid value: "integer": spec.map.a in body must be of type string: "integer"',
            id="map value",
        ),
        pytest.param(
            {"share": True},
            "FieldValueTypeInvalid",
            "spec.share",
            'Invalid value: "boolean": spec.share in body must be of type integer,string: "boolean"',
            id="int or string",
        ),
        pytest.param(
            {"lo": 2, "hi": 1},
            "FieldValueInvalid",
            "spec",
            "Invalid value: lo must not exceed hi: swap them",
            id="rule",
        ),
    ],
)
async def test_values_are_judged_by_the_schema(
    things: Things, spec: Obj, reason: str, field: str, message: str
) -> None:
    answer = await things.offer(**spec)
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert (reason, field, message) in answer.causes
    assert answer.message.startswith(f'Thing.{things.group} "offered" is invalid: ')
    assert message in answer.message


async def test_a_required_field_is_named_and_rules_wait_for_it(server: Server, things: Things) -> None:
    answer = await server.post(things.path, things.thing("b", {}))
    fields = {(cause[0], cause[1]) for cause in answer.causes}
    assert fields == {("FieldValueRequired", "spec.size"), ("FieldValueInvalid", "<nil>")}


async def test_a_transition_rule_is_judged_on_update(server: Server, things: Things) -> None:
    path = await things.make(size=3)
    answer = await server.patch("merge", path, {"spec": {"size": 4}})
    assert (answer.code, answer.causes) == (
        422,
        {("FieldValueInvalid", "spec", "Invalid value: size is immutable")},
    )
    assert (await server.patch("merge", path, {"spec": {"hi": 5}})).code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"metadata": {"name": "x"}, "spec": {"size": 1}}, 400, id="no kind"),
        pytest.param({"kind": "Thing", "metadata": {"name": "x"}}, 400, id="no version"),
        pytest.param({"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "x"}}, 400, id="another version"),
    ],
)
async def test_a_custom_resource_says_what_it_is(server: Server, things: Things, body: Obj, code: int) -> None:
    assert (await server.post(things.path, body)).code == code


async def test_another_kind_of_the_version_is_invalid(server: Server, things: Things) -> None:
    answer = await server.post(things.path, things.thing("x", {"size": 1}) | {"kind": "Thong"})
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {"kind"})


async def test_strict_field_validation_refuses_and_warning_warns(things: Things) -> None:
    refused = await things.offer("?fieldValidation=Strict", wat=1)
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message.endswith('strict decoding error: unknown field "spec.wat"')
    warned = await things.offer("?fieldValidation=Warn", wat=1)
    assert (warned.code, "wat" in warned.body["spec"]) == (201, False)
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.wat\\""'


async def test_status_and_spec_keep_apart(server: Server, things: Things) -> None:
    path = await things.make()
    await server.patch("merge", path, {"status": {"n": 1}})
    assert "status" not in (await server.get(path)).body
    body = {"status": {"n": 2}, "spec": {"hi": 7}, "metadata": {"labels": {"a": "b"}}}
    answer = await server.patch("merge", f"{path}/status", body)
    assert answer.body["status"] == {"n": 2, "phase": "P"}
    assert "hi" not in answer.body["spec"]
    assert "labels" not in answer.body["metadata"]
    assert answer.body["metadata"]["generation"] == 1
    wrong = await server.patch("merge", f"{path}/status", {"status": {"n": "x"}})
    assert ("FieldValueTypeInvalid", "status.n") in {(cause[0], cause[1]) for cause in wrong.causes}


async def test_without_the_subresource_status_is_a_field(server: Server, own_things: Things) -> None:
    things = own_things
    await things.define(subresources=False)
    made = await server.made(things.path, things.thing("a", {"size": 1}, status={"n": 1}))
    assert made["status"] == {"n": 1, "phase": "P"}
    changed = await server.patch("merge", f"{things.path}/a", {"status": {"n": 2}})
    assert (changed.body["status"]["n"], changed.body["metadata"]["generation"]) == (2, 2)
    assert (await server.get(f"{things.path}/a/status")).code == 404


async def test_generation_counts_specs_and_deletion(server: Server, things: Things) -> None:
    path = await things.make()
    generations = [
        (await server.patch("merge", path, patch)).body["metadata"]["generation"]
        for patch in (
            {"metadata": {"labels": {"a": "b"}}},
            {"spec": {"hi": 1}},
            {"metadata": {"finalizers": ["a.b/c"]}},
        )
    ]
    assert generations == [1, 2, 2]
    assert (await server.delete(path)).body["metadata"]["generation"] == 3
    await server.patch("merge", path, {"metadata": {"finalizers": None}})


async def test_replacing_needs_the_version(server: Server, things: Things) -> None:
    path = await things.make()
    body = things.thing("a", {"size": 1, "hi": 9})
    refused = await server.put(path, body)
    assert (refused.code, {cause[1] for cause in refused.causes}) == (422, {"metadata.resourceVersion"})
    body["metadata"] = (await server.get(path)).body["metadata"]
    taken = await server.put(path, body)
    assert (taken.code, taken.body["spec"]["hi"]) == (200, 9)
    assert (await server.put(path, body)).code == 409


async def test_strategic_merge_is_for_built_in_kinds(server: Server, things: Things) -> None:
    path = await things.make()
    answer = await server.patch("strategic", path, {"spec": {"hi": 1}})
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")


async def test_json_patch_with_a_test_on_the_version(server: Server, things: Things) -> None:
    path = await things.make()
    version = (await server.get(path)).body["metadata"]["resourceVersion"]
    operations = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/status", "value": {"n": 1}},
    ]
    assert (await server.patch("json", f"{path}/status", operations)).body["status"]["n"] == 1
    assert (await server.patch("json", f"{path}/status", operations)).code == 422


async def test_declared_fields_can_be_selected_by_and_others_not(server: Server, things: Things) -> None:
    await things.make("a")
    await things.make("b", mode="B")
    assert (await server.get(f"{things.path}?fieldSelector=spec.mode%3DB")).names == ["b"]
    refused = await server.get(f"{things.path}?fieldSelector=spec.size%3D1")
    assert (refused.code, refused.message) == (400, "field label not supported: spec.size")


async def test_items_of_a_custom_list_carry_their_kind(server: Server, things: Things) -> None:
    await things.make()
    body = (await server.get(things.path)).body
    assert (body["kind"], body["items"][0]["kind"]) == ("ThingList", "Thing")


async def test_columns_make_the_table(server: Server, things: Things) -> None:
    path = await things.make(list=[{"k": "a"}, {"k": "b", "v": "w"}])
    await server.patch("merge", f"{path}/status", {"status": {"phase": "Up"}})
    table = (await server.get(things.path, accept=TABLE)).body
    columns = [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Phase", "string", 0),
        ("First", "string", 0),
        ("B", "string", 0),
        ("All", "string", 1),
        ("Age", "date", 0),
    ]
    [row] = table["rows"]
    assert row["cells"][:-1] == ["a", 1, "Up", "a", "w", "a"]
    assert row["cells"][-1].endswith("s")
    assert (row["object"]["kind"], row["object"]["metadata"]["name"]) == ("PartialObjectMetadata", "a")


async def test_absent_values_are_empty_cells(server: Server, things: Things) -> None:
    await things.make()
    [row] = (await server.get(things.path, accept=TABLE)).body["rows"]
    assert row["cells"][2:6] == [None, None, None, None]


async def test_custom_resources_are_watched(server: Server, things: Things) -> None:
    path = await things.make()
    version = (await server.get(path)).body["metadata"]["resourceVersion"]
    await server.patch("merge", f"{path}/status", {"status": {"n": 1}})
    await server.delete(path)
    events = await server.watched(f"{things.path}?watch=1&resourceVersion={version}", 2)
    assert seen(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert events[0]["object"]["kind"] == "Thing"


async def test_deleting_the_definition_takes_the_objects_along(server: Server, own_things: Things) -> None:
    things = own_things
    await things.define()
    await things.make()
    assert (await server.delete(things.definition)).code == 200
    for _ in range(100):
        if (await server.get(things.path)).code == 404:
            break
        await asyncio.sleep(0.05)  # noqa: TID251 - the real server cleans up in the background
    assert (await server.get(things.path)).code == 404


async def test_a_dry_run_keeps_nothing(server: Server, things: Things) -> None:
    answer = await things.offer("?dryRun=All")
    assert (answer.code, answer.body["spec"]["mode"]) == (201, "A")
    assert (await server.get(f"{things.path}/offered")).code == 404


async def test_a_definition_says_where_the_replicas_are(server: Server, own_things: Things) -> None:
    await own_things.define(scale=True)
    path = await own_things.make(size=2)
    await server.patch("merge", f"{path}/status", {"status": {"n": 1}})
    scale = (await server.get(f"{path}/scale")).body
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 2}, {"replicas": 1})
    refused = await server.patch("merge", f"{path}/scale", {"spec": {"replicas": 3}})
    assert {cause[2] for cause in refused.causes} == {"Invalid value: size is immutable"}
    assert (await server.get(path)).body["spec"]["size"] == 2


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(group: str, schema: Any, version: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A definition of things with one property, `a`, of this schema."""
    whole = {"type": "object", "properties": {"a": schema}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}} | (version or {})
    names = {"plural": "things", "kind": "Thing"}
    base = {"group": group, "scope": "Cluster", "names": names, "versions": [served]}
    return {"metadata": {"name": f"things.{group}"}, "spec": base | spec}


def columns(**column: str) -> dict[str, Any]:
    return {"additionalPrinterColumns": [{"name": "A"} | column]}


PART = "spec.validation.openAPIV3Schema.properties[a]"
WORDS = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({}, f"{PART}.type"),
        ({"type": "text"}, f"{PART}.type"),
        ({"type": "array"}, f"{PART}.items"),
        ({"type": "array", "items": [WORDS]}, f"{PART}.items"),
        ({"type": "array", "items": WORDS, "uniqueItems": True}, f"{PART}.uniqueItems"),
        ({"type": "array", "items": WORDS, "x-kubernetes-list-type": "bag"}, f"{PART}.x-kubernetes-list-type"),
        ({"type": "string", "pattern": "("}, f"{PART}.pattern"),
        ({"type": "string", "default": 5}, f"{PART}.default"),
        ({"type": "string", "x-kubernetes-validations": [{"rule": "("}]}, f"{PART}.x-kubernetes-validations[0].rule"),
        ({"type": "object", "properties": {"b": WORDS}, "additionalProperties": WORDS}, f"{PART}.additionalProperties"),
        ({"$ref": "#/definitions/b", "type": "string"}, f"{PART}.$ref"),
    ],
)
async def test_a_definition_by_which_nothing_can_be_judged_is_refused(server: Server, schema: Any, field: str) -> None:
    answer = await server.post(CRDS, definition(f"{server.unique('g')}.io", schema))
    assert (answer.code, field in {cause[1] for cause in answer.causes}) == (422, True), answer.body


@pytest.mark.parametrize(
    ("version", "spec", "field"),
    [
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": ".a"}]},
            {},
            "spec.additionalPrinterColumns[0].type",
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "string"}]},
            {},
            "spec.additionalPrinterColumns[0].JSONPath",
        ),
        ({"subresources": {"scale": {}}}, {}, "spec.subresources.scale.specReplicasPath"),
        ({"name": "V_1"}, {}, "spec.versions[0].name"),
        ({}, {"preserveUnknownFields": True}, "spec.preserveUnknownFields"),
        ({}, {"scope": "Everywhere"}, "spec.scope"),
    ],
)
async def test_a_definition_with_parts_that_make_no_sense_is_refused(
    server: Server, version: Any, spec: Any, field: str
) -> None:
    answer = await server.post(CRDS, definition(f"{server.unique('g')}.io", WORDS, version, **spec))
    assert (answer.code, field in {cause[1] for cause in answer.causes}) == (422, True), answer.body


@pytest.mark.parametrize(
    ("change", "field"),
    [({"scope": "Namespaced"}, "spec.scope"), ({"names": {"kind": "Other"}}, "spec.names.kind")],
)
async def test_a_definition_keeps_what_its_objects_are_stored_under(server: Server, change: Any, field: str) -> None:
    made = await server.made(CRDS, definition(f"{server.unique('g')}.io", WORDS))
    path = f"{CRDS}/{made['metadata']['name']}"
    for _ in range(100):
        found = (await server.get(path)).body
        if any(c["type"] == "Established" and c["status"] == "True" for c in found["status"].get("conditions") or ()):
            break
        await asyncio.sleep(0.05)  # noqa: TID251 - the real server establishes it in the background
    answer = await server.patch("merge", path, {"spec": change})
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {field})
    unversioned = {"metadata": {"name": found["metadata"]["name"]}, "spec": found["spec"]}
    assert (await server.put(path, unversioned)).code == 422
    await server.delete(path)
