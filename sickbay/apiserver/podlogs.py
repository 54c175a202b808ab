"""The log of a pod: what its kubelet has kept of it, handed through.

The server has no logs of its own. Who plays the kubelets (the simulator does) is asked; where nobody does, it is as if
no kubelet could be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from sickbay.apiserver.calls import Answer, ResourceCall
from sickbay.apiserver.errors import Obj, bad_request, internal, method_not_allowed
from sickbay.apiserver.store import Store
from sickbay.clock import rfc3339_micro

Logs = Callable[[Obj], Sequence[tuple[datetime, str]] | None]
"""The lines a pod has written, and when; None where its kubelet does not answer."""


def nobody(_: Obj) -> None:
    """No kubelet answers."""


def answer(store: Store, request: ResourceCall, logs: Logs) -> Answer:
    """GET of a pod's `log`, with `tailLines` and `timestamps`. Raises StatusError."""
    target, query = request.target, request.call.query
    if request.call.method != "GET":
        raise method_not_allowed()
    pod = store.get(request.key, target.name, target.namespace)
    tail = query.number("tailLines")
    if tail is not None and tail < 0:
        raise bad_request("tailLines: Invalid value: must be greater than or equal to 0")
    node = (pod.get("spec") or {}).get("nodeName", "")
    lines = logs(pod) if node else []
    if lines is None:
        raise internal(f'Get "https://{node}:10250/containerLogs/{target.namespace}/{target.name}": connection refused')
    chosen = lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]
    stamped = query.flag("timestamps")
    text = "".join(f"{rfc3339_micro(at)} {line}\n" if stamped else f"{line}\n" for at, line in chosen)
    return Answer(200, text.encode(), content_type=b"text/plain; charset=utf-8")
