"""What the agent writes to its Node and NodeMetric: only its own keys, only what differs, at the right moments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.core.observe.prediction import Prediction
from agent.core.observe.series import Series
from agent.core.observe.usage import UsageState
from agent.edge.publisher import NodePublisher
from agent.ports import TickResult
from agent.report.node_patches import WatchedNode
from agent.settings import AgentSettings
from kube import objects
from model.node import Node
from model.nodesettings import NodeSettings
from model.pod.status import PodPhase
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import ColocationStrategy, HostApplication
from tests.agent.offering import Offering
from tests.agent.playing import Scenario
from tests.kube.conftest import ScriptedServer, says

STATUS = "/api/v1/nodes/n/status"
NODE = "/api/v1/nodes/n"
METRIC = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/n/status"
GONE = {BATCH_CPU: None, BATCH_MEMORY: None, MID_CPU: None, MID_MEMORY: None}


@pytest.fixture
def server(tmp_path: Path) -> ScriptedServer:
    return ScriptedServer(tmp_path)


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def standing(build: Any, **amounts: int) -> Node:
    """A node that offers batch resources already."""
    node: Node = build.node()
    names = {"cpu": BATCH_CPU, "memory": BATCH_MEMORY, "mid_cpu": MID_CPU, "mid_memory": MID_MEMORY}
    more = ResourceVector({**node.allocatable.amounts, **{names[key]: amount for key, amount in amounts.items()}})
    return msgspec.structs.replace(node, allocatable=more, capacity=more)


def result(
    build: Any, at: float, lent: int = 700, reason: Reason = Reason.COMPUTED, problem: str = "", **parts: Any
) -> TickResult:
    web = build.pod(cpu=1000)
    usage = None if reason is Reason.NODE_METRICS_MISSING else build.usage({web.uid: build.averages(400, 7)})
    fields = {
        "facts": build.facts(web, problem=problem),
        "usage": usage,
        "lending": build.lending(lent, 5, reason=reason),
        "degraded_reason": problem or ("" if reason is Reason.COMPUTED else reason.value),
    }
    made: TickResult = build.result(at, **{**fields, **parts})
    return made


Step = tuple[TickResult | None, int]


class Clock:
    """Monotonic seconds, as far as a test has let them pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def publish(
    server: ScriptedServer,
    steps: Sequence[Step],
    *answers: Any,
    only: str = STATUS,
    standing: objects.Condition | None = None,
    **settings: Any,
) -> list[Any]:
    """Feed results, each until that many requests to `only` came in; returns every (method, path, body).

    None stands for 16 s in which no tick came to an end.
    """

    async def scene() -> None:
        client, clock = await server.start(), Clock()
        server.answers = list(answers) or [says({})]
        conditions = {standing.type: standing} if standing else {}
        publisher = NodePublisher(client, "n", AgentSettings(**settings), WatchedNode(conditions.get), clock)
        running = asyncio.create_task(publisher.run())
        offering = Offering()
        for given, expected in steps:
            if given is None:
                clock.now += 16
                publisher._fresh.set()
            else:
                publisher.take(offering.decided(given, publisher.acknowledged))
            await eventually(lambda n=expected: sum(r[1] == only for r in server.requests) >= n)  # type: ignore[misc]
            await eventually(lambda: not publisher._fresh.is_set())
        await asyncio.sleep(0.05)
        running.cancel()
        await client.close()
        await server.stop()

    asyncio.run(scene())
    return [(method, path, body) for method, path, _, body in server.requests]


def bodies(sent: list[Any], wanted: str) -> list[Any]:
    return [body for _, path, body in sent if path == wanted]


def amounts(sent: list[Any]) -> list[Any]:
    """What was offered with each patch that offers anything; capacity and allocatable always agree."""
    found = [body["status"] for body in bodies(sent, STATUS) if "capacity" in body["status"]]
    assert all(status["capacity"] == status["allocatable"] for status in found)
    return [status["allocatable"] for status in found]


def conditions(sent: list[Any]) -> list[tuple[str, str]]:
    found = [body["status"].get("conditions", [None])[0] for body in bodies(sent, STATUS)]
    return [(condition["status"], condition["reason"]) for condition in found if condition]


def offer(cpu: int) -> dict[str, str]:
    return {BATCH_CPU: str(cpu), BATCH_MEMORY: "5", MID_CPU: "0", MID_MEMORY: "0"}


def test_node_status_is_a_patch_of_our_keys(server: ScriptedServer, build: Any) -> None:
    """Capacity and allocatable together, our condition, nothing else."""
    sent = publish(server, [(result(build, 0), 1)])
    method, _, body = next(request for request in sent if request[1] == STATUS)
    assert method == "PATCH" and set(body) == {"status"}
    assert set(body["status"]) == {"capacity", "allocatable", "conditions"}
    assert amounts(sent) == [offer(700)]
    condition = body["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("ColocationReady", "True", "LendingActive")
    assert condition["lastHeartbeatTime"] == condition["lastTransitionTime"] == "1970-01-01T00:16:40Z"
    assert bodies(sent, NODE) == []


def test_unchanged_facts_are_not_written_again(server: ScriptedServer, build: Any) -> None:
    """A shrink is told at once, growth after a rest; the same number is not, while the node says what it was told."""
    steps = []
    for at, lent, standing_now, expected in (
        (0, 700, 700, 1),
        (1, 700, 700, 1),
        (2, 500, 700, 2),
        (3, 900, 500, 2),
        (12, 900, 500, 3),
        (30, 900, 900, 3),
    ):
        facts = build.facts(node=standing(build, cpu=standing_now, memory=5, mid_cpu=0, mid_memory=0))
        steps.append((result(build, at, lent, facts=facts), expected))
    assert amounts(publish(server, steps)) == [offer(700), offer(500), offer(900)]


@pytest.mark.parametrize("reason", [Reason.LENDING_DISABLED, Reason.NODE_METRICS_STALE, Reason.PODS_STALE])
def test_withdrawn_resources_are_removed(server: ScriptedServer, build: Any, reason: Reason) -> None:
    """Null in capacity and allocatable: the keys leave the node, at once, and the condition says why."""
    sent = publish(server, [(result(build, 0), 1), (result(build, 1, reason=reason), 2)])
    assert amounts(sent) == [offer(700), GONE]
    assert conditions(sent) == [("True", "LendingActive"), ("False", reason.value)]


def test_what_running_pods_request_is_not_withdrawn(server: ScriptedServer, build: Any) -> None:
    """They could not be admitted again; a pod that is merely bound does not count, one with a cgroup does."""
    pods = (
        build.batch("runs", batch_cpu=300),
        build.batch("bound", batch_cpu=4000, phase=PodPhase.PENDING),
    )
    off = result(build, 0, reason=Reason.LENDING_DISABLED, facts=build.facts(*pods))
    assert amounts(publish(server, [(off, 1)])) == [GONE | {BATCH_CPU: "300"}]


def test_keys_that_came_back_are_removed_again(server: ScriptedServer, build: Any) -> None:
    """Another writer, or a kubelet that kept them: five seconds after our own patch."""
    facts = build.facts(node=standing(build, cpu=900))
    steps = [(result(build, at, reason=Reason.LENDING_DISABLED, facts=facts), n) for at, n in ((0, 1), (4, 1), (6, 2))]
    assert amounts(publish(server, steps)) == [GONE, GONE]


def test_a_node_that_lost_our_keys_gets_them_again(server: ScriptedServer, build: Any) -> None:
    """It was created again."""
    steps = [(result(build, at), n) for at, n in ((0, 1), (4, 1), (6, 2))]
    assert amounts(publish(server, steps)) == [offer(700), offer(700)]


BLIND = [Reason.NODE_METRICS_MISSING, Reason.SETTINGS_UNREAD, Reason.PODS_UNKNOWN]


@pytest.mark.parametrize("reason", BLIND)
def test_a_blind_start_changes_nothing_and_a_lasting_blindness_withdraws(
    server: ScriptedServer, build: Any, reason: Reason
) -> None:
    """Not measured or not read yet: keep what is published; still not after 15 s: gone, with the reason."""
    facts = build.facts(node=standing(build, cpu=900, memory=9))
    early = [(result(build, at, reason=reason, facts=facts), 0) for at in (0, 15)]
    sent = publish(server, [*early, (result(build, 16, reason=reason, facts=facts), 1)])
    assert len(bodies(sent, STATUS)) == 1 and amounts(sent) == [GONE]
    assert conditions(sent) == [("False", reason.value)]


def test_a_new_agent_does_not_grow_what_stands(server: ScriptedServer, build: Any) -> None:
    """One quiet second after a restart lends no more than its predecessor published; a full window does."""
    facts = build.facts(node=standing(build, cpu=300, memory=9))
    young = result(build, 0, facts=facts, usage=build.usage(live_seconds=1.0))
    sent = publish(server, [(young, 1), (result(build, 12, facts=facts), 2)])
    assert amounts(sent) == [offer(300), offer(700)]


def test_what_stands_is_kept_while_pods_are_unknown(server: ScriptedServer, build: Any) -> None:
    """Blind for more than 15 s with the pods of its predecessor on the node: no key goes, and the condition is False."""
    facts = build.facts(node=standing(build, cpu=900, memory=9), pods=None)
    steps = [(result(build, at, reason=Reason.PODS_UNKNOWN, facts=facts), n) for at, n in ((0, 0), (16, 1))]
    sent = publish(server, steps)
    assert amounts(sent) == [GONE | {BATCH_CPU: "900", BATCH_MEMORY: "9"}]
    assert conditions(sent) == [("False", "PodsUnknown")]


def test_no_tick_for_too_long_withdraws(server: ScriptedServer, build: Any) -> None:
    """Ticks that fail for ever: down to what running pods request and False, stamped with the time it is now."""
    good = result(build, 0, facts=build.facts(build.batch("a", batch_cpu=300)))
    sent = publish(server, [(good, 1), (None, 2), (result(build, 30), 3)])
    assert amounts(sent)[:2] == [offer(700), GONE | {BATCH_CPU: "300"}]
    assert conditions(sent) == [("True", "LendingActive"), ("False", "NodeMetricsStale"), ("True", "LendingActive")]
    told = bodies(sent, STATUS)[1]["status"]["conditions"][0]
    # The tick was at 1000 s, 16:40, and is 16 s old.
    assert told["lastHeartbeatTime"] == told["lastTransitionTime"] == "1970-01-01T00:16:56Z"


def test_no_tick_at_all_is_told(server: ScriptedServer) -> None:
    """An agent whose ticks fail from the start knows no amounts; what a predecessor said of lending is not left True."""
    sent = publish(server, [(None, 1)])
    assert amounts(sent) == [] and conditions(sent) == [("False", "NodeMetricsMissing")]


def unseen(build: Any, at: float, pods: Any = None) -> TickResult:
    """The Node object is not known."""
    return result(build, at, reason=Reason.SETTINGS_UNREAD, facts=build.facts(node=None, pods=pods))


def test_without_its_node_object_the_condition_is_told(server: ScriptedServer, build: Any) -> None:
    """Not to be read, as without the right to: after 15 s False; amounts only as far as running pods are known."""
    sent = publish(server, [(unseen(build, 0), 0), (unseen(build, 15), 0), (unseen(build, 16), 1)])
    assert amounts(sent) == [] and conditions(sent) == [("False", "SettingsUnread")]
    server.requests.clear()
    pods = (build.batch("a", batch_cpu=300),)
    sent = publish(server, [(unseen(build, 0, pods), 0), (unseen(build, 16, pods), 1), (unseen(build, 17, pods), 1)])
    assert amounts(sent) == [GONE | {BATCH_CPU: "300"}] and conditions(sent) == [("False", "SettingsUnread")]
    assert bodies(sent, NODE) == []


def test_a_node_that_was_deleted_is_told_all_when_it_is_back(server: ScriptedServer, build: Any) -> None:
    """404 is no news of lending: amounts and condition go out with the first tick that sees the new Node."""

    async def answer(request: Any) -> Any:
        is_gone = [path for _, path, _, _ in server.requests].count(STATUS) == 2
        return await (says({"message": "no such node"}, 404) if is_gone else says({}))(request)

    steps = [(result(build, 0), 1), (unseen(build, 16), 2), (result(build, 17), 3)]
    sent = publish(server, steps, answer)
    assert amounts(sent) == [offer(700), offer(700)]
    assert conditions(sent) == [("True", "LendingActive"), ("False", "SettingsUnread"), ("True", "LendingActive")]


LEFT: dict[str, tuple[str, str | None, str]] = {
    # what a predecessor's condition says, since when, and what ours says
    "the same": ("True", "1970-01-01T00:00:07Z", "1970-01-01T00:00:07Z"),
    "another status": ("False", "1970-01-01T00:00:07Z", "1970-01-01T00:16:40Z"),
    "no time": ("True", None, "1970-01-01T00:16:40Z"),
}


@pytest.mark.parametrize(("status", "since", "expected"), LEFT.values(), ids=LEFT.keys())
def test_a_restart_is_no_transition(
    server: ScriptedServer, build: Any, status: str, since: str | None, expected: str
) -> None:
    """Only another status than the predecessor's is one; later ones are this agent's own."""
    left = objects.Condition(type="ColocationReady", status=status, last_transition_time=since)
    steps = [(result(build, 0), 1), (result(build, 1, reason=Reason.LENDING_DISABLED), 2), (result(build, 2), 3)]
    sent = publish(server, steps, standing=left)
    told = [body["status"]["conditions"][0]["lastTransitionTime"] for body in bodies(sent, STATUS)]
    assert told == [expected, "1970-01-01T00:16:41Z", "1970-01-01T00:16:42Z"]


def test_a_document_that_withholds_lending_is_named(server: ScriptedServer, build: Any) -> None:
    """Broken since the start: not "switched off", but what to mend."""
    facts = build.facts(problem="ConfigMap a/b: x")
    off = result(build, 0, reason=Reason.LENDING_DISABLED, facts=facts)
    sent = publish(server, [(off, 1)])
    assert conditions(sent) == [("False", "ConfigurationInvalid")]
    assert bodies(sent, STATUS)[0]["status"]["conditions"][0]["message"] == "ConfigMap a/b: x"


def test_a_long_message_is_cut(server: ScriptedServer, build: Any) -> None:
    """The policy of agents refuses a longer one, and with it what is lent and taken back."""
    off = result(build, 0, reason=Reason.LENDING_DISABLED, facts=build.facts(problem="x" * 20_000))
    sent = publish(server, [(off, 1)])
    assert bodies(sent, STATUS)[0]["status"]["conditions"][0]["message"] == "x" * 16_384


def test_without_a_quota_file_no_more_is_lent(server: ScriptedServer, build: Any, tmp_path: Path) -> None:
    """The whole tick: best effort has no cpu controller, so from this tick on the node offers what pods request, and
    says why.
    """
    node = Scenario("v1_surge", tmp_path / "node", build)
    good = [node.linger(1, web=400) for _ in range(12)][-1]
    node.file("cpu/kubepods/besteffort/cpu.cfs_quota_us").unlink()
    lost = node.linger(1, web=400)
    sent = publish(server, [(good, 1), (lost, 2)])
    before, after = amounts(sent)
    for name, lent in zip((BATCH_CPU, BATCH_MEMORY), good.lending.final, strict=False):
        running = sum(pod.spec.requests[name] for pod in lost.facts.pods or ())
        assert (int(before[name]), int(after[name])) == (lent.value, running) and lent.value > running
    assert conditions(sent) == [("True", "LendingActive"), ("False", "CeilingNotPossible")]


def test_an_invalid_document_shows_in_the_condition(server: ScriptedServer, build: Any) -> None:
    """Still True, since the last good settings are at work; the message says what to mend, and follows it."""
    steps = [(result(build, at, problem=text), 1 + at) for at, text in enumerate(("one", "two"))]
    sent = publish(server, steps)
    assert conditions(sent) == [("True", "ConfigurationInvalid")] * 2
    told = [body["status"]["conditions"][0]["message"] for body in bodies(sent, STATUS)]
    assert told == ["one; the last good settings stay in force", "two; the last good settings stay in force"]


def test_the_condition_has_a_heartbeat_and_keeps_its_transition(server: ScriptedServer, build: Any) -> None:
    """Renewed unchanged as often as is set; the transition is when the status changed, not the reason."""
    off = Reason.LENDING_DISABLED
    steps = [
        (result(build, 0), 1),
        (result(build, 9, problem="x"), 2),
        (result(build, 19, problem="x"), 3),
        (result(build, 21, reason=off), 4),
    ]
    found = [
        body["status"]["conditions"][0]
        for body in bodies(publish(server, steps, heartbeat_seconds=10.0), STATUS)
        if "conditions" in body["status"]
    ]
    beats = [(c["lastHeartbeatTime"][-3:-1], c["lastTransitionTime"][-3:-1]) for c in found]
    # Unix time is 1000 s plus the tick's: 16:40.
    assert beats == [("40", "40"), ("49", "40"), ("59", "40"), ("01", "01")]


def test_a_refused_write_is_tried_again(server: ScriptedServer, build: Any) -> None:
    """Nothing counts as published until the server took it."""
    first = True

    async def answer(request: Any) -> Any:
        nonlocal first
        refuse = request.path == STATUS and first
        first = first and not refuse
        return await (says({"message": "busy"}, 429) if refuse else says({}))(request)

    steps = [(result(build, 0), 1), (result(build, 1), 2)]
    assert amounts(publish(server, steps, answer)) == [offer(700)] * 2


def test_a_new_ratio_comes_with_the_amounts_it_multiplied(server: ScriptedServer, build: Any) -> None:
    """The API server holds the amounts against the ratio that stands on the Node."""
    lent = msgspec.structs.replace(build.lending(700, 5), normalization_ratio=1.2)
    ratio = "node.koordinator.sh/cpu-normalization-ratio"
    first = publish(server, [(result(build, 0, lending=lent), 1)], only=STATUS)
    assert bodies(first, STATUS)[0]["metadata"] == {"annotations": {ratio: "1.20"}}
    server.requests.clear()
    there = msgspec.structs.replace(build.node(), annotations={ratio: "1.20"})
    second = publish(server, [(result(build, 0, lending=lent, facts=build.facts(node=there)), 1)], only=STATUS)
    assert "metadata" not in bodies(second, STATUS)[0]


def test_annotations_only_when_they_differ(server: ScriptedServer, build: Any) -> None:
    """What was lent before third parties' share, and the CPU's ratio, by a merge patch of these two keys."""
    lent = msgspec.structs.replace(
        build.lending(700, 5), origin=ResourceVector({BATCH_CPU: 900, BATCH_MEMORY: 5}), normalization_ratio=1.2
    )
    origin = "node.koordinator.sh/originExtendedAllocatable"
    ratio = "node.koordinator.sh/cpu-normalization-ratio"
    first = publish(server, [(result(build, 0, lending=lent), 1)], only=NODE)
    told = bodies(first, NODE)[0]["metadata"]["annotations"]
    assert json.loads(told[origin]) == {"resources": {BATCH_CPU: "900", BATCH_MEMORY: "5"}}
    assert told[ratio] == "1.20" and set(told) == {origin, ratio}
    server.requests.clear()
    there = msgspec.structs.replace(build.node(), annotations={**told, ratio: "1.00", "other": "x"})
    second = publish(server, [(result(build, 0, lending=lent, facts=build.facts(node=there)), 1)], only=NODE)
    assert bodies(second, NODE) == [{"metadata": {"annotations": {ratio: "1.20"}}}]
    server.requests.clear()
    same = msgspec.structs.replace(there, annotations=told)
    third = publish(server, [(result(build, 0, lending=lent, facts=build.facts(node=same)), 1)])
    assert bodies(third, NODE) == []
    server.requests.clear()
    fourth = publish(server, [(result(build, 0, facts=build.facts(node=same)), 1)], only=NODE)
    assert bodies(fourth, NODE) == [{"metadata": {"annotations": {origin: None}}}], "the last third party has gone"


def test_nothing_left_to_third_parties_is_told_too(server: ScriptedServer, build: Any) -> None:
    """Zero is an amount: without it they would go by what was there before."""
    nothing = ResourceVector({BATCH_CPU: 0, BATCH_MEMORY: 0})
    lent = msgspec.structs.replace(build.lending(0, 0), origin=nothing)
    sent = publish(server, [(result(build, 0, lending=lent), 1)], only=NODE)
    told = bodies(sent, NODE)[0]["metadata"]["annotations"]["node.koordinator.sh/originExtendedAllocatable"]
    assert json.loads(told) == {"resources": {BATCH_CPU: "0", BATCH_MEMORY: "0"}}


def rich(build: Any) -> TickResult:
    """All that a NodeMetric can say."""
    web = build.pod("web", cpu=1000)
    used = Series()
    for at in range(300):
        used = used.push(at * 1000, Usage(600, 1 << 20))
    settings = NodeSettings(
        ColocationStrategy(aggregate_durations_seconds=(300.0, 1800.0), report_seconds=3600.0),
        host_applications=(HostApplication("nginx", "/nginx", "LS", "koord-prod"),),
    )
    usage = build.usage(
        {web.uid: build.averages(400, 7, aggregate=300)},
        host_applications={"nginx": build.averages(50, 5)},
        numa={0: build.averages(100, 1 << 20)},
    )
    return result(
        build,
        0,
        facts=build.facts(web, settings=settings),
        usage=usage,
        used=UsageState(monotonic_seconds=300.0, node_series=used, system_series=used),
        prediction=Prediction(Usage(11, 12), Usage(13, 14), ()),
    )


def test_node_metric_says_everything(server: ScriptedServer, build: Any) -> None:
    """Averages of the aggregate window, statistics, pods, host applications, NUMA nodes and the prediction."""
    status = bodies(publish(server, [(rich(build), 1)], only=METRIC), METRIC)[0]["status"]
    assert status["updateTime"] == "1970-01-01T00:16:40Z"
    node = status["nodeMetric"]
    assert node["nodeUsage"]["resources"] == {"cpu": "700m", "memory": "1073741824"}
    assert node["systemUsage"]["resources"] == {"cpu": "100m", "memory": "536870912"}
    (five_minutes,) = node["aggregatedNodeUsages"]
    assert five_minutes["duration"] == "5m0s" and five_minutes["usage"]["p95"]["resources"]["cpu"] == "600m"
    assert set(five_minutes["usage"]) == {"avg", "p50", "p90", "p95", "p99"}
    assert [numa["numaNodeID"] for numa in node["numaUsages"]] == [0]
    (pod,) = status["podsMetric"]
    assert (pod["namespace"], pod["name"], pod["priority"], pod["qos"]) == ("default", "web", "koord-prod", "LS")
    assert pod["podUsage"]["resources"]["cpu"] == "300m"
    (host,) = status["hostApplicationMetric"]
    assert (host["name"], host["usage"]["resources"]["cpu"], host["priority"]) == ("nginx", "50m", "koord-prod")
    assert status["prodReclaimableMetric"]["resource"]["resources"]["cpu"] == "11m"
    assert status["prodPeakMetric"]["resource"]["resources"] == {"cpu": "13m", "memory": "14"}


def test_what_a_node_metric_does_not_know_is_removed(server: ScriptedServer, build: Any) -> None:
    """A prediction of yesterday does not stand for ever."""
    status = bodies(publish(server, [(result(build, 0), 1)], only=METRIC), METRIC)[0]["status"]
    assert status["prodReclaimableMetric"] is None and status["hostApplicationMetric"] == []


def test_a_node_metric_that_is_not_there_is_waited_for(server: ScriptedServer, build: Any) -> None:
    """The leading scheduler makes it: the agent creates nothing, says who does, and asks again."""
    asked = 0

    async def answer(request: Any) -> Any:
        nonlocal asked
        asked += request.path == METRIC
        missing = request.path == METRIC and asked == 1
        return await (says({"message": "none"}, 404) if missing else says({}))(request)

    with capture_logs() as logs:
        sent = [r for r in publish(server, [(result(build, 0), 2)], answer, only=METRIC) if "nodemetrics" in r[1]]
    assert [method for method, *_ in sent] == ["PATCH", "PATCH"]
    assert any("the leading scheduler makes it" in line.get("error", "") for line in logs)


def test_node_metric_is_written_as_often_as_settings_say(server: ScriptedServer, build: Any) -> None:
    """The cluster's report interval, not the agent's tick; without a measurement there is nothing to report."""

    def every(seconds: float, at: float) -> TickResult:
        strategy = ColocationStrategy(report_seconds=seconds)
        return result(build, at, facts=build.facts(settings=NodeSettings(strategy)))

    often = publish(server, [(every(0.01, 0), 3)], only=METRIC)
    assert len(bodies(often, METRIC)) >= 3
    server.requests.clear()
    seldom = publish(server, [(every(3600, at), 1) for at in range(3)], only=METRIC)
    assert len(bodies(seldom, METRIC)) == 1
    server.requests.clear()
    blind = publish(server, [(result(build, 16, reason=Reason.NODE_METRICS_MISSING), 0)])
    assert bodies(blind, METRIC) == []


def test_node_metric_trouble_does_not_delay_the_node(server: ScriptedServer, build: Any) -> None:
    """No NodeMetric definition on the cluster: shrinking is published at once all the same."""

    async def answer(request: Any) -> Any:
        known = "nodemetrics" not in request.path
        return await (says({}) if known else says({"message": "no such resource"}, 404))(request)

    steps = [(result(build, at, 700 - at * 100), 1 + at) for at in range(5)]
    assert amounts(publish(server, steps, answer)) == [offer(amount) for amount in (700, 600, 500, 400, 300)]


def test_nothing_is_offered_once_it_was_given_up(server: ScriptedServer, build: Any) -> None:
    """Ticks go on until the agent has ended: neither they nor a patch that was under way undo the last word."""

    async def scene() -> None:
        client, held = await server.start(), asyncio.Event()

        async def slow(request: Any) -> Any:
            if request.path == STATUS:
                await held.wait()
            return await says({})(request)

        server.answers = [slow]
        publisher = NodePublisher(client, "n", AgentSettings())
        running = asyncio.create_task(publisher.run())
        offering = Offering()
        publisher.take(offering.decided(result(build, 0)))
        await eventually(lambda: any(request[1] == STATUS for request in server.requests))
        last = asyncio.create_task(publisher.withdraw(Reason.OBSERVING))
        publisher.take(offering.decided(result(build, 1)))
        held.set()
        await last
        for at in (20, 60, 120):
            publisher.take(offering.decided(result(build, at, lent=9000), publisher.acknowledged))
            await eventually(lambda: not publisher._fresh.is_set() and not publisher._writing.locked())
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()
        await server.stop()

    asyncio.run(scene())
    sent = [(method, path, body) for method, path, _, body in server.requests if path == STATUS]
    assert amounts(sent)[:2] == [offer(700), GONE] and set(map(str, amounts(sent)[1:])) == {str(GONE)}
    assert [reason for _, reason in conditions(sent)][1:] == ["Observing"] * (len(conditions(sent)) - 1)


def test_a_patch_that_hangs_is_overtaken(server: ScriptedServer, build: Any) -> None:
    """A growth hangs, and the load comes back: what stands already is told again at once, and with a change, since a
    patch without any would leave the Node's version as it is, for which the growth was made.
    """
    outage, hung = asyncio.Event(), 0

    async def answer(request: Any) -> Any:
        nonlocal hung
        if request.path == STATUS and [path for _, path, _, _ in server.requests].count(STATUS) == 2:
            hung += 1
            await outage.wait()
        return await says({"metadata": {"resourceVersion": "8"}})(request)

    steps = [(result(build, 0, 500), 1), (result(build, 12, 700), 2), (result(build, 12.5, 500), 3)]
    sent = publish(server, steps, answer)
    assert hung == 1 and amounts(sent) == [offer(500), offer(700), offer(500)]
    first, _, last = bodies(sent, STATUS)
    beats = [body["status"]["conditions"][0]["lastHeartbeatTime"] for body in (first, last)]
    assert beats[0] != beats[1] and last["metadata"] == {"resourceVersion": "8"}
