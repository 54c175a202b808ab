"""Our term in the node affinity: in every alternative, and gone again to the letter."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.recover.affinity import HOSTNAME, REQUIRED, exclude

names = st.lists(st.sampled_from(["n1", "n2", "n3", "n4"]), unique=True)
expressions = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["zone", "gpu"]), "operator": st.just("In"), "values": st.just(["a"])}
    ),
    min_size=1,
    max_size=2,
)
terms = st.lists(st.fixed_dictionaries({"matchExpressions": expressions}), min_size=1, max_size=3)
others = st.fixed_dictionaries({"podAntiAffinity": st.just({"x": 1})})
specs = st.one_of(
    st.just({}),
    st.builds(lambda o: {"affinity": o}, others),
    st.builds(lambda t: {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": t}}}}, terms),
    st.builds(lambda t, o: {"affinity": {**o, "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": t}}}}, terms, others),
)


def terms_of(spec):
    return spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


@given(specs, names)
def test_what_was_put_in_is_taken_out_to_the_letter(spec, nodes):
    changed = deepcopy(spec)
    exclude(changed, [], nodes)
    exclude(changed, nodes, [])
    assert changed == spec


@given(specs, names.filter(bool))
def test_every_alternative_keeps_away_from_the_nodes(spec, nodes):
    changed = deepcopy(spec)
    exclude(changed, [], nodes)
    ours = {"key": HOSTNAME, "operator": "NotIn", "values": nodes}
    assert all(ours in term["matchExpressions"] for term in terms_of(changed))


@given(specs, names, names)
def test_an_exclusion_replaces_the_one_before(spec, first, second):
    at_once, one_by_one = deepcopy(spec), deepcopy(spec)
    exclude(at_once, [], second)
    exclude(one_by_one, [], first)
    exclude(one_by_one, first, second)
    assert one_by_one == at_once


@pytest.mark.parametrize("before", [["n9"], ["n1", "n2"]])
def test_an_owners_own_exclusion_is_not_taken_for_ours(before):
    theirs = {"key": HOSTNAME, "operator": "NotIn", "values": ["n1"]}
    spec = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [theirs]}]}}}}
    changed = deepcopy(spec)
    exclude(changed, before, [])
    assert changed == spec
