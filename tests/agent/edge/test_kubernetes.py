"""What the agent reads of and writes to the API server: only its own keys, at the right moments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.limits import Limits
from agent.edge.cluster import ClusterEdge
from agent.edge.publisher import Publisher
from agent.ports import ClusterFacts, TickResult
from agent.settings import AgentSettings
from kube.events import EventRecorder
from model.decision import Decision, Term, Unit
from model.reason import Reason
from model.resources import BATCH_CPU
from model.strategy import ColocationStrategy, SuppressStrategy
from tests.kube.conftest import ScriptedServer, says

NODE = {"metadata": {"name": "n", "uid": "u"}, "status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "2"}}}


@pytest.fixture
def server(tmp_path: Path) -> ScriptedServer:
    return ScriptedServer(tmp_path)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def result(build: Any, at: float, lent: int, reason: Reason = Reason.COMPUTED, problem: str = "") -> TickResult:
    decision = Decision("node/n", BATCH_CPU, lent, Unit.MILLI_CPU, reason, (Term("x", lent),))
    web = build.pod(cpu=1000)
    facts = ClusterFacts(build.node(), (web,), ColocationStrategy(), SuppressStrategy(), problem)
    usage = None if reason is Reason.NODE_METRICS_MISSING else build.usage({web.uid: build.averages(400, 7)})
    why = problem or ("" if reason is Reason.COMPUTED else reason.value)
    return TickResult(build.seen(at), facts, usage, (decision,), Limits({}, None), (), (), None, why)


def count(server: ScriptedServer, only: str) -> int:
    return sum(only in request[1] for request in server.requests)


def publish(
    server: ScriptedServer, answers: list[Any], results: list[tuple[TickResult, int]], only: str = ""
) -> list[Any]:
    """Feed results, each until that many requests (with `only` in the path) came in; returns (method, path, body)."""

    async def scene() -> None:
        client = await server.start()
        server.answers = answers
        publisher = Publisher(client, "n", AgentSettings())
        running = asyncio.create_task(publisher.run())
        for given, expected in results:
            publisher.take(given)
            await eventually(lambda expected=expected: count(server, only) >= expected)  # type: ignore[misc]
        await asyncio.sleep(0.05)
        running.cancel()
        await client.close()
        await server.stop()

    asyncio.run(scene())
    return [(method, path, body) for method, path, _, body in server.requests]


def by_path(sent: list[Any], part: str) -> list[Any]:
    return [body for _, path, body in sent if part in path]


def test_node_status_is_a_patch_of_our_keys(server: ScriptedServer, build: Any) -> None:
    """Capacity and allocatable together, our condition, nothing else; then the NodeMetric's status."""
    sent = publish(server, [says({})], [(result(build, 0, 700), 2)])
    method, path, body = sent[0]
    assert (method, path) == ("PATCH", "/api/v1/nodes/n/status")
    assert set(body) == {"status"} and set(body["status"]) == {"capacity", "allocatable", "conditions"}
    assert body["status"]["capacity"] == body["status"]["allocatable"] == {BATCH_CPU: "700"}
    condition = body["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("ColocationReady", "True", "LendingActive")
    assert sent[1][1] == "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n/status"
    assert sent[1][2]["status"]["podsMetric"][0]["podUsage"]["resources"]["cpu"] == "400m"


def test_a_missing_node_metric_is_made(server: ScriptedServer, build: Any) -> None:
    """404 on its status: create it, owned by the node, then patch."""
    answers = [says({}), says({"message": "none"}, 404), says({})]
    sent = publish(server, answers, [(result(build, 0, 700), 4)])
    assert [entry[0] for entry in sent] == ["PATCH", "PATCH", "POST", "PATCH"]
    assert sent[2][2]["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_unchanged_facts_are_not_written_again(server: ScriptedServer, build: Any) -> None:
    """A shrink is told at once; the same number is not."""
    results = [(result(build, 0, 700), 2), (result(build, 1, 700), 2), (result(build, 2, 500), 3)]
    sent = publish(server, [says({})], results)
    assert [body["status"].get("capacity") for _, path, body in sent if "nodes/n/" in path] == [
        {BATCH_CPU: "700"},
        {BATCH_CPU: "500"},
    ]


def test_a_blind_start_changes_nothing_and_a_lasting_blindness_withdraws(server: ScriptedServer, build: Any) -> None:
    """Not measured yet: keep what is published; still not after 15 s: zero, with the reason in the condition."""
    blind = Reason.NODE_METRICS_MISSING
    sent = publish(server, [says({})], [(result(build, 0, 0, blind), 0), (result(build, 16, 0, blind), 1)])
    status = by_path(sent, "nodes/n/")[0]["status"]
    assert len(by_path(sent, "nodes/n/")) == 1 and status["allocatable"] == {BATCH_CPU: "0"}
    assert (status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", "NodeMetricsMissing")


def test_a_new_agent_does_not_grow_what_stands(server: ScriptedServer, build: Any) -> None:
    """One quiet second after a restart lends no more than its predecessor published; a full window does."""
    young = result(build, 0, 700)
    young = msgspec.structs.replace(young, usage=build.usage(live_seconds=1.0))
    sent = publish(server, [says({})], [(young, 2), (result(build, 12, 700), 3)])
    assert [body["status"]["allocatable"] for body in by_path(sent, "nodes/n/")] == [
        {BATCH_CPU: "0"},
        {BATCH_CPU: "700"},
    ]


def test_node_metric_trouble_does_not_delay_the_node(server: ScriptedServer, build: Any) -> None:
    """No NodeMetric definition on the cluster: shrinking is published at once all the same."""

    async def answer(request: Any) -> Any:
        known = "nodemetrics" not in request.path
        return await (says({}) if known else says({"message": "no such resource"}, 404))(request)

    steps = [(result(build, at, 700 - at * 100), 1 + at) for at in range(5)]
    sent = publish(server, [answer], steps, only="nodes/n/")
    amounts = [body["status"]["allocatable"][BATCH_CPU] for body in by_path(sent, "nodes/n/")]
    assert amounts == ["700", "600", "500", "400", "300"]


def test_an_invalid_document_shows_in_the_condition(server: ScriptedServer, build: Any) -> None:
    """Still True, since the last good settings are at work; the message says what to mend."""
    sent = publish(server, [says({})], [(result(build, 0, 700, problem="NodeSLO n: x is y"), 2)])
    condition = sent[0][2]["status"]["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("True", "ConfigurationInvalid")
    assert condition["message"] == "NodeSLO n: x is y; the last good settings stay in force"


def test_a_changed_problem_is_told_at_once(server: ScriptedServer, build: Any) -> None:
    """The condition never names a fault that was mended while another one came."""
    steps = [(result(build, at, 700, problem=text), 1 + at) for at, text in enumerate(("one", "two"))]
    sent = publish(server, [says({})], steps, only="nodes/n/")
    told = [body["status"]["conditions"][0]["message"].split(";")[0] for body in by_path(sent, "nodes/n/")]
    assert told == ["one", "two"]


def test_a_refused_write_is_tried_again(server: ScriptedServer, build: Any) -> None:
    """Nothing counts as published until the server took it."""
    answers = [says({"message": "busy"}, 429), says({})]
    sent = publish(server, answers, [(result(build, 0, 700), 1), (result(build, 1, 700), 3)])
    assert [body["status"].get("capacity") for _, path, body in sent if "nodes/n/" in path] == [{BATCH_CPU: "700"}] * 2


def test_facts_follow_the_api_server(server: ScriptedServer, build: Any) -> None:
    """Node, pods in order, a broken NodeSLO that keeps the last good settings, and what is asked for."""

    async def answer(request: Any) -> Any:
        if request.query.get("watch"):
            await asyncio.sleep(30)
        items: list[Any] = []
        if request.path.endswith("/nodes"):
            items = [NODE]
        elif request.path.endswith("/pods"):
            bad = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4Gib"}}}]}
            items = [
                {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": spec}
                for name, spec in (("b", {}), ("a", {}), ("bad", bad))
            ]
        elif request.path.endswith("/nodeslos"):
            spec = {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 500}}
            items = [{"metadata": {"name": "n"}, "spec": spec}]
        return await says({"metadata": {"resourceVersion": "5"}, "items": items})(request)

    async def scene() -> None:
        client = await server.start()
        server.answers = [answer]
        events = EventRecorder(client, "sublet-agent", "n")
        edge = ClusterEdge(client, "n", AgentSettings(), events)
        assert edge.facts().pods is None and "not read yet" in edge.facts().problem
        running = asyncio.create_task(edge.run())
        await eventually(lambda: edge.facts().pods is not None and "is 500" in edge.facts().problem)
        await eventually(lambda: edge.facts().node is not None)
        facts = edge.facts()
        assert facts.pods_age_seconds < 20
        running.cancel()
        await client.close()
        await server.stop()
        assert facts.node is not None and [pod.name for pod in facts.pods or ()] == ["a", "b"]
        assert facts.suppress == SuppressStrategy() and "cpuSuppressThresholdPercent: is 500" in facts.problem
        selectors = {request[1]: request[2].get("fieldSelector") for request in server.requests}
        assert selectors["/api/v1/pods"] == "spec.nodeName=n" and selectors["/api/v1/nodes"] == "metadata.name=n"

    asyncio.run(scene())
