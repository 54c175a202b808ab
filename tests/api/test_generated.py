"""Generated files are current, and the contract v1alpha1 began with still holds."""

from pathlib import Path

import pytest

from sickbay.api import crds, generate, reference

ROOT = Path(__file__).parents[2]
REMEDY = "run `python -m sickbay.api.generate` and commit what it wrote"
CONTRACT = [[cell.strip() for cell in line.split("|", 3)] for line in generate.contract(ROOT)]
SHORT = "rp rr ft hold nr nt ie rpol jr".split()  # noqa: SIM905 - reads as the contract has it
CLUSTER = "repairpools repairrules faulttypes holds noderepairs nodetasks infraevents".split()  # noqa: SIM905
NAMESPACED = ["recoverypolicies", "jobrecoveries"]


@pytest.mark.parametrize("path", generate.generated(ROOT), ids=str)
def test_a_generated_file_is_current(path):
    assert (ROOT / path).read_text() == generate.generated(ROOT)[path], REMEDY


def test_no_generated_file_is_left_over():
    wanted = {path.name for path in generate.generated(ROOT) if path.parent == generate.CRDS}
    assert {path.name for path in (ROOT / generate.CRDS).iterdir()} == wanted


def test_generating_writes_every_file_below_the_root(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / generate.CONTRACT).write_text((ROOT / generate.CONTRACT).read_text())
    monkeypatch.setattr("sys.argv", ["generate", str(tmp_path)])
    generate.main()
    for path in generate.generated(ROOT):
        assert (tmp_path / path).read_text() == (ROOT / path).read_text()


def still_holds(before, after):
    """Same default, or one for what had to be said; same type, where a list of words may grow."""
    old_type, old_default = before
    new_type, new_default = after
    old_words, new_words = set(old_type.split(" / ")), set(new_type.split(" / "))
    return old_default in (new_default, "required") and (
        old_words <= new_words if len(old_words) > 1 else old_words == new_words
    )


@pytest.mark.parametrize("kind", crds.schemas())
def test_the_fields_of_the_contract_stay_with_their_types_and_defaults(kind):
    now = {path: (type_, default) for path, type_, default in map(cells, reference.fields(kind))}
    contract = {path: (type_, default) for of, path, type_, default in CONTRACT if of == kind}
    assert contract, "the contract knows the kind"
    lost = {path: was for path, was in contract.items() if path not in now or not still_holds(was, now[path])}
    assert lost == {}


def cells(field):
    return [cell.strip() for cell in field.line.split(" | ")]


def test_short_names_plurals_and_scopes_are_those_of_the_contract():
    assert [definition.short for definition in crds.DEFINITIONS] == SHORT
    scopes = {m["spec"]["names"]["plural"]: m["spec"]["scope"] for m in crds.manifests()}
    assert scopes == dict.fromkeys(CLUSTER, "Cluster") | dict.fromkeys(NAMESPACED, "Namespaced")


def walk(schema, path=""):
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from walk(schema[key], path + mark)


ALL = [(kind, path, schema) for kind, root in crds.schemas().items() for path, schema in walk(root)]


def test_every_field_says_what_it_is_for():
    silent = [
        kind + path
        for kind, path, schema in ALL
        if "description" not in schema and not path.endswith(("[]", "{}")) and path != ".metadata"
    ]
    assert silent == []


def test_every_list_map_and_text_has_a_limit():
    limits = {"array": ("maxItems",), "string": ("maxLength", "enum")}
    boundless = [
        kind + path
        for kind, path, schema in ALL
        if schema.get("type") in limits and not any(limit in schema for limit in limits[schema["type"]])
    ]
    boundless += [k + p for k, p, s in ALL if "additionalProperties" in s and "maxProperties" not in s]
    assert boundless == []


def test_fault_types_have_no_defaults_since_they_are_merged_field_by_field():
    assert [path for kind, path, schema in ALL if kind == "FaultType" and "default" in schema] == []


def test_a_status_has_no_defaults_since_it_is_not_yet_written():
    assert [kind + path for kind, path, schema in ALL if path.startswith(".status") and "default" in schema] == []


def test_every_rule_names_what_is_wrong_and_then_what_to_do():
    for kind, path, schema in ALL:
        for rule in schema.get("x-kubernetes-validations", ()):
            problem, mark, remedy = rule["message"].partition("; ")
            assert problem and mark and remedy and "; " not in remedy, (kind, path, rule["message"])


def test_all_nine_are_written_as_one_file_without_references(tmp_path):
    import yaml

    with (tmp_path / "crds.yaml").open("w") as stream:
        crds.write_yaml(stream)
    text = (tmp_path / "crds.yaml").read_text()
    assert list(yaml.safe_load_all(text)) == crds.manifests()
    assert "&id" not in text


def test_the_reference_tells_apart_what_was_added_since(tmp_path):
    contract = generate.contract(ROOT)
    without = [line for line in contract if not line.startswith("Hold | spec.owner")]
    assert "- Hold `spec.owner`" not in reference.markdown(contract)
    assert "- Hold `spec.owner`" in reference.markdown(without)
