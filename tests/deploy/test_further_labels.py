"""Labels and words of one's own, under the policies that `sickbay policies` prints: guarded like those that ship."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sickbay.api import names
from sickbay.api.repair_plan import ApprovalForm
from sickbay.cli.policies import rendered
from tests.deploy.conftest import with_roles
from tests.deploy.world import NODE, Call, asked, node, send, set_labels, stage
from tests.support.controlplane import ControlPlane
from tests.support.install import DEPLOY, POLICIES, apply_file, wait_for_policies

pytestmark = pytest.mark.controlplane

FORM = ApprovalForm(key="acme.example/{step}", inquiring="asked", approved=["go"], denied=["stop"])
KEY, PREFIXED = "acme.example/drain", "approve.other.example/drain-node"


@pytest.fixture(scope="module")
def widened(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A server with the printed policies in force."""
    control_plane = with_roles(control_plane_binaries, tmp_path_factory.mktemp("widened"))
    try:
        folder = tmp_path_factory.mktemp("policies")
        for name in POLICIES:
            text = (DEPLOY / name).read_text(encoding="utf-8")
            (folder / name).write_text(rendered(text, {"other": "approve.other.example"}, {"acme": FORM}))
            apply_file(control_plane, folder / name)
        wait_for_policies(control_plane)
        yield control_plane
    finally:
        control_plane.stop()


def question(*groups: str, label: str = KEY, value: str = "asked") -> dict[str, object]:
    given = asked(*groups, label=label)
    given["metadata"]["labels"] = {label: value}
    return given


REFUSED = {
    "an answer for a group they are not in": Call("dev", NODE, set_labels({KEY: "go"}), given=question("gpu-oncall")),
    "in another spelling": Call("dev", NODE, set_labels({KEY: "GO"}), given=question("gpu-oncall")),
    "a word that means nothing": Call("dev", NODE, set_labels({KEY: "maybe"}), given=question()),
    "the controller answers itself": Call("controller", NODE, set_labels({KEY: "go"}), given=question()),
    "under a further prefix": Call(
        "dev",
        NODE,
        set_labels({PREFIXED: "approved"}),
        given=question("gpu-oncall", label=PREFIXED, value="inquiring"),
    ),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
async def test_what_is_refused_for_our_labels_is_refused_for_theirs(widened: ControlPlane, call: Call) -> None:
    stage(widened, call.given)
    answer = await send(widened, call)
    assert answer.status_code == 422, answer.text
    assert "ValidatingAdmissionPolicy 'sickbay-approvals'" in answer.json()["message"]


ALLOWED = {
    "a person says yes": Call("dev", NODE, set_labels({KEY: "go"}), given=question()),
    "a person says no": Call("dev", NODE, set_labels({KEY: "stop"}), given=question("people")),
    "under a further prefix": Call(
        "dev", NODE, set_labels({PREFIXED: "approved"}), given=question(label=PREFIXED, value="inquiring")
    ),
    "the controller asks": Call("controller", NODE, set_labels({KEY: "asked"})),
}


@pytest.mark.parametrize("call", ALLOWED.values(), ids=ALLOWED)
async def test_what_may_be_done_with_ours_may_be_done_with_theirs(widened: ControlPlane, call: Call) -> None:
    stage(widened, call.given)
    answer = await send(widened, call)
    assert answer.status_code == 200, answer.text


async def test_who_answered_is_stamped(widened: ControlPlane) -> None:
    stage(widened, question())
    answer = await send(widened, Call("dev", NODE, set_labels({KEY: "go"})))
    assert answer.status_code == 200, answer.text
    stamp = node(widened)["metadata"]["annotations"][names.CHANGED_BY]
    assert '"user":"dev"' in stamp and KEY in stamp
