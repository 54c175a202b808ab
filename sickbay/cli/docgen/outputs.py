"""What the commands print in a real situation: the story of one morning in a small cluster, and the lines typed in it.

Every line is run where it stands in the story, so what is shown of one command is what the others have led to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sickbay.cli.docgen import files
from sickbay.cli.docgen.situation import Shown, Situation, situation
from sickbay.sim.cloud import ScriptLine
from sickbay.sim.fleet import PoolSpec

POOLS = (
    PoolSpec("train", nodes=6, gpus=8),
    PoolSpec("nvl", nodes=3, gpus=4, rack=3),
    PoolSpec("lab", nodes=1, gpus=8),
)
ADMISSION = Path(__file__).parents[3] / "deploy" / "admission.yaml"
BUG = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (512x4096 and 8192x128)"


@dataclass(frozen=True, slots=True)
class Scene:
    """What is shown of a command: where things stand, and what was typed."""

    command: str
    about: str
    shown: tuple[Shown, ...]


class _Telling:
    """The scenes so far, and the place they happen in."""

    def __init__(self, place: Situation) -> None:
        self.place = place
        self.scenes: list[Scene] = []

    def show(self, command: str, about: str, *lines: str) -> None:
        self.scenes.append(Scene(command, about, tuple(self.place.run(line) for line in lines)))


@cache
def scenes() -> tuple[Scene, ...]:
    """All scenes, in the order of the story, which is played once in a process."""
    with situation() as place:
        telling = _Telling(place)
        for chapter in _CHAPTERS:
            chapter(telling)
    return tuple(telling.scenes)


def by_command() -> dict[str, list[Scene]]:
    found: dict[str, list[Scene]] = {}
    for scene in scenes():
        found.setdefault(scene.command, []).append(scene)
    return found


def lines(scene: Scene) -> Iterator[str]:
    """As it stands in the page."""
    yield from (scene.about, "", "```text")
    for i, shown in enumerate(scene.shown):
        yield from ([""] if i else [])
        yield from shown.lines()
    yield from ("```", "")


def _without_a_cluster(telling: _Telling) -> None:
    place = telling.place
    for name, text in files.FILES.items():
        place.keep(name, text)
    place.keep("admission.yaml", ADMISSION.read_text())
    telling.show("check", "With this as `rules.yaml`:\n\n" + files.fenced("rules.yaml"), "sickbay check rules.yaml")
    telling.show("catalogue show", "One fault type:", "sickbay catalogue gpu.xid.94")
    telling.show(
        "catalogue diff", "With this as `my-faults.yaml`:\n\n" + files.fenced("my-faults.yaml"),
        "sickbay catalogue diff built-in my-faults.yaml",
    )  # fmt: skip
    telling.show("decode", "A line as `dmesg` prints it, kept in a file:", "sickbay decode kernel.log")
    telling.show(
        "test", "With the scenario `smallest` of `docs/testing-rules.md` as `smallest.yaml`:",
        "sickbay test smallest.yaml",
    )  # fmt: skip

    telling.show("crds", "Its first lines:", "sickbay crds | head -8")
    telling.show(
        "policies", "With `deploy/admission.yaml` as `admission.yaml`; its first lines:",
        "sickbay policies admission.yaml --approval-prefix acme=approve.acme.example | head -8",
    )  # fmt: skip
    telling.show(
        "import ack", "With this as `policy.json`:\n\n" + files.fenced("policy.json"), "sickbay import ack policy.json"
    )
    unread = "Where there is no such file:"
    telling.show("agent", unread, "sickbay agent --kubeconfig missing.yaml")
    telling.show("controller", unread, "sickbay controller --kubeconfig missing.yaml")
    telling.show("chaos", "What came of seeds is shown in `docs/chaos.md`. A slip:", "sickbay chaos --seeds 9-1")
    telling.show("demo", "It tells its story for about half a minute. A slip:", "sickbay demo --factor 100")


def _a_morning_begins(telling: _Telling) -> None:
    place = telling.place
    place.begin(POOLS, files.CLUSTER)
    place.pass_time(5)
    telling.show("status", "Before anything is wrong:", "sickbay status")
    for node in ("train-1", "train-4", "lab-0"):
        place.kernel_says(node, files.FALLEN)
    place.detector_says("nvl-1", "RackFabric", "True", "Down", "7 of 8 switch planes are up")
    place.detector_says("train-4", "FrequentContainerdRestart", "True", "Frequent", "5 restarts in 20 minutes")
    place.backend_answers("nvl", ScriptLine("recoverDomain", "permanent", "plane 3 does not come up", times=9))
    place.pass_time(2)
    place.rank_exits("eval", 1, BUG)
    place.pass_time(3)
    place.rank_exits("eval", 1, BUG)
    place.pass_time(5)


def _looking(telling: _Telling) -> None:
    telling.show("status", "Nodes are out, and repairs are open:", "sickbay status", "sickbay status tain")
    telling.show("queue", "What needs a person then:", "sickbay queue")
    telling.show("queue", "The same for a program:", "sickbay queue -o json")
    telling.show("explain", "A node that waits for an answer:", "sickbay explain train-1")
    telling.show("explain", "A node of a group:", "sickbay explain nvl-0")
    telling.show("explain", "A job whose program is wrong:", "sickbay explain job/eval")
    telling.show("explain", "A node that nobody knows:", "sickbay explain train-99")
    telling.show("impact", "`lab` only observes:", "sickbay impact lab")


def _answering(telling: _Telling) -> None:
    place = telling.place
    telling.show("approve", "Another step than the one that is asked for:", "sickbay approve train-1 Repair")
    telling.show("deny", "One node:", 'sickbay deny train-4 Drain --reason "demo until Friday"')
    telling.show("approve", "What would be answered:", "sickbay approve --all-waiting --step Drain --dry-run")
    telling.show("approve", "The step that waits:", 'sickbay approve train-1 Drain --reason "checkpoint is written"')
    telling.show(
        "approve", "A whole group, by the name that `explain` shows, and a node that is answered already:",
        f"sickbay approve --group {_group(telling)} train-4 Drain",
    )  # fmt: skip
    place.pass_time(1)
    telling.show("explain", "A job that was moved away from a node before its drain:", "sickbay explain job/llm")
    place.pass_time(19)


def _group(telling: _Telling) -> str:
    found = telling.place.world.records_of("noderepairs.sickbay.dev", "nvl-0")
    return str(found[-1]["spec"]["group"]["id"])


def _afterwards(telling: _Telling) -> None:
    place = telling.place
    telling.show("history", "After the repair:", "sickbay history train-1", "sickbay history train-4")
    telling.show("explain", "A node that needs people:", "sickbay explain nvl-1")
    telling.show(
        "resolve", "People have mended it:", 'sickbay resolve nvl-1 --outcome Repaired --reason "plane 3 reseated"'
    )
    telling.show(
        "clear", "Somebody else's detector never takes its word back:",
        'sickbay clear train-4 FrequentContainerdRestart --reason "runtime fixed"',
    )  # fmt: skip
    telling.show(
        "hold", "For two hours:", 'sickbay hold driver-roll-out --pool train --for 2h --reason "driver 595"',
        "sickbay hold everything --reason why",
    )  # fmt: skip
    telling.show("explain", "A node under a hold:", "sickbay explain train-5")
    telling.show("release", "When the roll-out is done sooner:", "sickbay release driver-roll-out")
    telling.show(
        "stop", "When something is wrong with Sickbay itself:",
        'sickbay stop --level EveryAct --reason "something is wrong with it"', "sickbay release stop",
    )  # fmt: skip
    telling.show(
        "repair", "A reboot by hand:",
        'sickbay repair train-2 --remedy RebootNode --reason "hangs now and then"',
        "sickbay repair train-2 --remedy PowerCycle --reason impatient",
    )  # fmt: skip
    telling.show("validate", "Is it well?", "sickbay validate train-3")
    place.pass_time(10)
    telling.show("validate", "Some minutes later:", "sickbay history train-3")


_CHAPTERS: tuple[Callable[[_Telling], None], ...] = (
    _without_a_cluster,
    _a_morning_begins,
    _looking,
    _answering,
    _afterwards,
)
