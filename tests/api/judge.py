"""What our own judgement says of the table's objects, in the order a server would take."""

from sickbay.api.crds import schemas
from sickbay.api.patches import apply_merge
from sickbay.api.structural import default, prune, validate


def admitted(schema, manifest):
    return default(schema, prune(schema, manifest))


def judged(kind, manifest, old=None):
    """The object as it would be stored, and what is wrong with it."""
    new = admitted(schemas()[kind], manifest)
    return new, validate(schemas()[kind], new, old)


def judged_bad(bad, name):
    """What is wrong with a bad object, or with the change that must be refused."""
    stored, violations = judged(bad.kind, bad.manifest(name))
    if bad.then is None:
        return violations
    assert violations == [], "what comes before the change must be good"
    if bad.status is not None:
        stored, violations = judged(bad.kind, apply_merge(stored, bad.status), stored)
        assert violations == [], "what comes before the change must be good"
    return judged(bad.kind, apply_merge(stored, bad.then), stored)[1]
