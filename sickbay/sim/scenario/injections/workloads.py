"""Injections into pods and jobs."""

from __future__ import annotations

from sickbay.sim.hand import Refused
from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.nodes import ADMIN
from sickbay.sim.scenario.injections.registry import Act, NothingThereError, injection
from sickbay.sim.world import World


@injection("evict")
def evict(args: Reader) -> Act:
    pod, by = args.text("pod"), args.text("by", ADMIN)
    namespace, name = _split(args, pod)

    def act(world: World) -> None:
        try:
            world.person(by).evict(name, namespace)
        except Refused as error:
            if error.code != 429:  # a disruption budget said no: that is an answer, not a mistake of the file
                raise

    return act


def _split(args: Reader, pod: str) -> tuple[str, str]:
    namespace, _, name = pod.rpartition("/")
    if not name or "/" in namespace:
        raise args.error("pod", f"must be namespace/name, not {pod!r}")
    return namespace or "default", name


@injection("podExit")
def pod_exit(args: Reader) -> Act:
    if args.has("pod") == args.has("selector"):
        raise args.error("pod", "give either pod or selector")
    namespace, name = _split(args, args.text("pod")) if args.has("pod") else (args.text("namespace", "default"), "")
    selector = args.text("selector") if args.has("selector") else ""
    code = args.integer("code", 1)
    signal, reason, log = args.integer("signal", 0), args.text("reason", ""), args.text("log", "")

    def act(world: World) -> None:
        pods = world.pods_of(namespace, name, selector)
        if not pods and world.was_taken(namespace, name, selector):
            return  # whoever moved the pod was faster: its processes have ended already
        if not pods:
            raise NothingThereError(f"no running pod {namespace}/{name or selector}")
        for pod in pods:
            world.kubelet.exit_pod(pod, code, signal, reason, log)

    return act


@injection("podLog")
def pod_log(args: Reader) -> Act:
    """Lines that running pods print. An addition of ours to the injections of the contract."""
    namespace, selector = _stalls(args)
    if args.has("line") == args.has("lines"):
        raise args.error("line", "give either line or lines")
    lines = args.texts("lines") if args.has("lines") else (args.text("line"),)

    def act(world: World) -> None:
        for pod in world.pods_of(namespace, "", selector):
            world.kubelet.write_log(pod, "\n".join(lines))

    return act


def _stalls(args: Reader) -> tuple[str, str]:
    return args.text("namespace", "default"), args.text("selector")


@injection("podStall")
def pod_stall(args: Reader) -> Act:
    namespace, selector = _stalls(args)

    def act(world: World) -> None:
        world.kubelet.stall_pods(world.pods_of(namespace, "", selector))

    return act


@injection("progress")
def progress(args: Reader) -> Act:
    namespace, selector = _stalls(args)
    step = args.integer("step")

    def act(world: World) -> None:
        for pod in world.pods_of(namespace, "", selector):
            world.kubelet.report_step(pod, step)

    return act
