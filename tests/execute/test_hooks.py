"""Hooks as execute runs them: a Job or a call per hook, claimed before it begins, once whatever dies in between."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from sickbay.execute.hooks import endpoints
from sickbay.execute.hooks.endpoints import Endpoint, EndpointError, read
from sickbay.kube import errors
from tests.execute.kit import Bench

SPACE = "sickbay-system"
JOBS = "jobs.batch"
SECRET = b"a secret"


def hooked(*hooks: dict[str, Any], stage: str = "Before") -> Bench:
    """A drain with these hooks, at the stage that runs them."""
    bench = Bench()
    bench.store.create("namespaces", {"metadata": {"name": SPACE}})
    container = {"name": "main", "image": "i", "env": [{"name": "SICKBAY_NODE", "value": "forged"}]}
    template = {"metadata": {"name": "snapshot", "namespace": SPACE}, "template": {"spec": {"containers": [container]}}}
    bench.store.create("podtemplates", template)
    bench.open("Drain", Drain={stage.lower(): list(hooks)}, current={"stage": stage})
    return bench


def job_hook(name: str = "snapshot", template: str = "snapshot", **more: Any) -> dict[str, Any]:
    return {"name": name, "job": {"podTemplate": template}, "timeout": "10m", "onFailure": "Escalate", **more}


def call_hook(name: str = "inventory", endpoint: str = "inventory", **more: Any) -> dict[str, Any]:
    return {"name": name, "call": {"endpoint": endpoint}, "timeout": "10m", "onFailure": "Escalate", **more}


def answering(bench: Bench, *codes: int, text: str = "noted") -> list[httpx2.Request]:
    """An endpoint that answers with these codes, one after the other, the last one for ever."""
    asked: list[httpx2.Request] = []
    bench.endpoints["inventory"] = Endpoint("inventory", "https://inventory.example/hook", SECRET)

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        code = codes[min(len(asked), len(codes)) - 1]
        if code == 0:
            raise httpx2.ConnectError("no route to host")
        return httpx2.Response(code, text=text)

    bench.outside = httpx2.MockTransport(answer)
    return asked


def reports(bench: Bench) -> list[dict[str, Any]]:
    return bench.store.get("noderepairs.sickbay.dev", "r1")["status"]["steps"]["Drain"].get("hooks") or []


def jobs(bench: Bench) -> list[dict[str, Any]]:
    return bench.store.list(JOBS, SPACE)


def job_ends(bench: Bench, condition: str, message: str = "") -> None:
    status = {"conditions": [{"type": condition, "status": "True", "message": message}]}
    bench.store.patch(
        JOBS, jobs(bench)[0]["metadata"]["name"], {"status": status}, namespace=SPACE, subresource="status"
    )


async def ends(bench: Bench, count: int = 1) -> list[dict[str, Any]]:
    shift = bench.shift()
    await shift.looks(lambda: [r["state"] in ("Done", "Failed") for r in reports(bench)] == [True] * count)
    return reports(bench)


async def test_a_job_is_made_from_the_template_and_told_what_it_is_about() -> None:
    bench = hooked(job_hook())
    await bench.shift().look()
    (job,) = jobs(bench)
    told = {env["name"]: env["value"] for env in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert (told["SICKBAY_NODE"], told["SICKBAY_STEP"], told["SICKBAY_STAGE"]) == ("n1", "Drain", "Before")
    assert told["SICKBAY_KEY"] == f"{bench.key}/Before/snapshot"
    assert job["metadata"]["ownerReferences"][0]["uid"] == bench.repair().metadata.uid
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 600)
    assert bench.report == {}, "the step itself has not been claimed"


@pytest.mark.parametrize(
    ("condition", "state", "said"),
    [("Complete", "Done", "completed"), ("Failed", "Failed", "disk full")],
    ids=["completes", "fails"],
)
async def test_the_result_of_the_job_is_the_hooks(condition: str, state: str, said: str) -> None:
    bench = hooked(job_hook())
    await bench.shift().look()
    job_ends(bench, condition, "disk full")
    (report,) = await ends(bench)
    assert report["state"] == state
    assert said in report["message"]


async def test_a_job_that_takes_too_long_is_stopped() -> None:
    bench = hooked(job_hook(timeout="30s"))
    (report,) = await ends(bench)
    assert (report["state"], jobs(bench)) == ("Failed", [])
    assert "not done within 30s" in report["message"]


async def test_a_template_that_is_not_there_is_named() -> None:
    (report,) = await ends(hooked(job_hook(template="no-such")))
    assert (report["state"], "no-such" in report["message"]) == ("Failed", True)


async def test_a_job_of_somebody_else_under_the_name_is_not_taken_for_ours() -> None:
    bench = hooked(job_hook())
    await bench.shift().look()
    name = jobs(bench)[0]["metadata"]["name"]
    bench.store.patch(JOBS, name, {"metadata": {"ownerReferences": None}}, namespace=SPACE)
    job_ends(bench, "Complete")
    (report,) = await ends(bench)
    assert (report["state"], "somebody else" in report["message"]) == ("Failed", True)


@pytest.mark.parametrize("where", ["POST jobs", "PATCH noderepairs/status"], ids=["after the Job", "after the claim"])
async def test_a_lost_answer_makes_no_second_job(where: str) -> None:
    bench = hooked(job_hook())
    lost = [where]
    bench.wire.lose = lambda request: (
        bool(lost)
        and f"{request.method} {request.url.path}".endswith("jobs" if where.startswith("POST") else "status")
        and bool(lost.pop())
    )
    with pytest.raises(errors.ApiError):
        await bench.shift().look()
    await bench.shift().look()
    await bench.shift().look()
    assert len(jobs(bench)) == 1


async def test_the_hooks_run_one_after_the_other() -> None:
    bench = hooked(job_hook("one"), job_hook("two"))
    shift = bench.shift()
    await shift.look()
    await shift.look()
    assert [r["name"] for r in reports(bench)] == ["one"]
    job_ends(bench, "Complete")
    await shift.looks(lambda: len(jobs(bench)) == 2)
    assert [(r["name"], r["state"] in ("Done",)) for r in reports(bench)] == [("one", True), ("two", False)]


async def test_a_call_is_signed_dated_and_keyed() -> None:
    bench = hooked(call_hook())
    asked = answering(bench, 200)
    (report,) = await ends(bench)
    (request,) = asked
    stamp = request.headers["x-sickbay-timestamp"]
    signed = hmac.new(SECRET, stamp.encode() + b"." + request.content, hashlib.sha256).hexdigest()
    assert request.headers["x-sickbay-signature"] == f"sha256={signed}"
    assert request.headers["idempotency-key"] == f"{bench.key}/Before/inventory"
    assert int(stamp) == int(bench.clock.now().timestamp())
    assert json.loads(request.content)["node"]["name"] == "n1"
    assert (report["state"], "200: noted" in report["message"]) == ("Done", True)


CALLS = {
    "no answer, then a yes": ((0, 0, 200), "Done", 3),
    "busy, then a yes": ((503, 429, 204), "Done", 3),
    "not done yet": ((202, 202, 200), "Done", 3),
    "a no": ((403,), "Failed", 1),
    "a redirect is no answer": ((307,), "Failed", 1),
}


@pytest.mark.parametrize(("codes", "state", "requests"), CALLS.values(), ids=CALLS)
async def test_what_an_answer_means(codes: tuple[int, ...], state: str, requests: int) -> None:
    bench = hooked(call_hook())
    asked = answering(bench, *codes)
    (report,) = await ends(bench)
    assert (report["state"], len(asked)) == (state, requests)
    assert len({request.headers["idempotency-key"] for request in asked}) == 1


async def test_an_endpoint_that_never_answers_is_asked_a_bounded_number_of_times() -> None:
    bench = hooked(call_hook())
    asked = answering(bench, 500)
    (report,) = await ends(bench)
    assert report["state"] == "Failed"
    assert "not done within 10m" in report["message"]
    assert 5 < len(asked) < 20


async def test_an_endpoint_that_nobody_has_configured_is_named() -> None:
    (report,) = await ends(hooked(call_hook(endpoint="elsewhere")))
    assert "elsewhere" in report["message"]


async def test_after_a_cancel_no_hook_begins_and_a_running_job_goes() -> None:
    bench = hooked(job_hook())
    await bench.shift().look()
    bench.ask("Unquarantine", attempt=2, done=["Quarantine"], phase="Cancelling", current={"stage": ""})
    await bench.shift().look()
    assert jobs(bench) == []
    assert reports(bench)[0]["state"] == "Failed"


async def test_a_hold_of_every_act_lets_no_hook_begin() -> None:
    bench = hooked(job_hook())
    bench.hold("EveryAct")
    await bench.shift().look()
    assert (jobs(bench), reports(bench)) == ([], [])
    assert bench.report["waitsFor"] == "Hold"


async def test_hooks_after_a_step_run_although_its_report_is_final() -> None:
    bench = hooked(job_hook(), stage="After")
    bench.merge(
        {"status": {"steps": {"Drain": {"report": {"state": "Done", "attempt": 1, "planGeneration": 1}}}}},
        "noderepairs.sickbay.dev",
        "r1",
        "status",
    )
    await bench.shift().look()
    assert len(jobs(bench)) == 1


# --- the file of endpoints


def file(tmp_path: Path, **entry: Any) -> str:
    (tmp_path / "secret").write_text("hush\n")
    full = {"name": "e", "url": "https://e.example", "secretFile": str(tmp_path / "secret"), **entry}
    path = tmp_path / "endpoints.yaml"
    path.write_text(json.dumps({"endpoints": [{k: v for k, v in full.items() if v is not None}]}))
    return str(path)


def test_an_endpoint_is_read_with_its_secret(tmp_path: Path) -> None:
    assert read(file(tmp_path))["e"] == Endpoint("e", "https://e.example", b"hush")


BAD = {
    "no TLS": ({"url": "http://provider:8080"}, "not encrypted"),
    "no address": ({"url": "e.example"}, "https://host/path"),
    "no secret": ({"secretFile": None}, "secretFile or secretEnv"),
    "secret not readable": ({"secretFile": "/no/such"}, "/no/such"),
    "no such authority": ({"caFile": "/no/such.pem"}, "/no/such.pem"),
    "unknown key": ({"token": "x"}, "token"),
}


@pytest.mark.case("P216")
@pytest.mark.parametrize(("entry", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_refused_with_its_remedy(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    with pytest.raises(EndpointError, match=said):
        read(file(tmp_path, **entry))


@pytest.mark.case("P216")
def test_plain_http_has_to_be_allowed_in_so_many_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(endpoints, "log", SimpleNamespace(warning=lambda text, **_: said.append(text)))
    found = read(file(tmp_path, url="http://provider:8080", allowPlainHTTP=True))
    assert found["e"].url == "http://provider:8080"
    assert ["without TLS" in text for text in said] == [True]
