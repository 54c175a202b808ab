"""What makes a definition invalid beside its schemas: names, versions, columns, subresources, and what never changes.

After apiextensions-apiserver/pkg/apis/apiextensions/validation. Where there is one version, the real server names its
parts as those of the definition; clients know the fields by those names.
"""

from __future__ import annotations

import re

from sickbay.apiserver.crdschema import check_schema
from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import invalid_value, required, subdomain_problems, unsupported_value

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_NAMES = ("plural", "singular", "kind", "listKind")


def check_definition(definition: Obj) -> list[Cause]:
    spec, name = definition.get("spec") or {}, definition["metadata"]["name"]
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    causes = _check_group(spec) + _check_names(names)
    if not causes and name != f"{names['plural']}.{spec['group']}":
        causes.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        causes.append(invalid_value("spec.preserveUnknownFields", True, why))
    causes += _check_versions(versions)
    for index, version in enumerate(versions):
        causes += _check_version(version, f"spec.versions[{index}]", alone=len(versions) == 1)
    return causes


def _check_group(spec: Obj) -> list[Cause]:
    group = spec.get("group") or ""
    if not group:
        causes = [required("spec.group")]
    elif "." not in group:
        causes = [invalid_value("spec.group", group, "should be a domain with at least one dot")]
    else:
        causes = [invalid_value("spec.group", group, problem) for problem in subdomain_problems(group)]
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        causes.append(unsupported_value("spec.scope", spec.get("scope") or "", "Cluster", "Namespaced"))
    return causes


def _check_names(names: Obj) -> list[Cause]:
    causes: list[Cause] = []
    for part in _NAMES:
        name = names.get(part) or ""
        if not name:
            causes.append(required(f"spec.names.{part}"))
        elif not _LABEL.fullmatch(name.lower()) or (name != name.lower() and part in ("plural", "singular")):
            causes.append(invalid_value(f"spec.names.{part}", name, _LABEL_TEXT))
    for part in ("shortNames", "categories"):
        for index, name in enumerate(names.get(part) or ()):
            if not _LABEL.fullmatch(name):
                causes.append(invalid_value(f"spec.names.{part}[{index}]", name, _LABEL_TEXT))
    return causes


def _check_versions(versions: list[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    known = [version.get("name", "") for version in versions]
    if len(set(known)) < len(known):
        causes.append(invalid_value("spec.versions", "", "must contain unique version names"))
    if sum(version.get("storage") is True for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        causes.append(invalid_value("spec.versions", "", why))
    return causes


def _check_version(version: Obj, field: str, *, alone: bool) -> list[Cause]:
    name, causes = version.get("name") or "", []
    if not _LABEL.fullmatch(name):
        causes.append(invalid_value(f"{field}.name", name, _LABEL_TEXT))
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    base = "spec" if alone else field
    if schema is None:
        causes.append(required(f"{field}.schema.openAPIV3Schema"))
    else:
        causes += check_schema(
            schema, "spec.validation.openAPIV3Schema" if alone else f"{field}.schema.openAPIV3Schema"
        )
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        causes += _check_column(column, f"{base}.additionalPrinterColumns[{index}]")
    for index, entry in enumerate(version.get("selectableFields") or ()):
        if not str(entry.get("jsonPath") or "").startswith("."):
            where = f"{base}.selectableFields[{index}].jsonPath"
            causes.append(
                invalid_value(where, entry.get("jsonPath") or "", "must be a simple json path starting with .")
            )
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        causes += _check_scale(scale, f"{base}.subresources.scale")
    return causes


def _check_column(column: Obj, field: str) -> list[Cause]:
    causes: list[Cause] = []
    kind, path = column.get("type") or "", column.get("jsonPath") or ""
    if not column.get("name"):
        causes.append(required(f"{field}.name"))
    if not kind:
        causes.append(required(f"{field}.type", f"must be one of {','.join(_COLUMN_TYPES)}"))
    elif kind not in _COLUMN_TYPES:
        causes.append(invalid_value(f"{field}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if not path:
        causes.append(required(f"{field}.JSONPath"))
    elif not path.startswith("."):
        causes.append(invalid_value(f"{field}.JSONPath", path, "must be a simple json path starting with ."))
    return causes


def _check_scale(scale: Obj, field: str) -> list[Cause]:
    causes: list[Cause] = []
    for part, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        path = scale.get(part) or ""
        if not path:
            causes.append(required(f"{field}.{part}"))
        elif not path.startswith(root):
            causes.append(invalid_value(f"{field}.{part}", path, f"should be a json path under {root[:-1]}"))
    return causes


def check_change(new: Obj, old: Obj) -> list[Cause]:
    """What an established definition keeps: objects are stored under it."""
    spec, before = new["spec"], old.get("spec") or {}
    names, named = spec.get("names") or {}, before.get("names") or {}
    kept = [
        ("spec.group", spec.get("group"), before.get("group")),
        ("spec.scope", spec.get("scope"), before.get("scope")),
        ("spec.names.plural", names.get("plural"), named.get("plural")),
        ("spec.names.kind", names.get("kind"), named.get("kind")),
    ]
    causes = [invalid_value(field, value, "field is immutable") for field, value, was in kept if value != was]
    present = {version.get("name") for version in spec.get("versions") or ()}
    for index, version in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if version not in present:
            why = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in"
                " spec.versions until a storage migration ensures no data remains persisted in it and removes it from"
                " status.storedVersions"
            )
            causes.append(invalid_value(f"status.storedVersions[{index}]", version, why))
    return causes
