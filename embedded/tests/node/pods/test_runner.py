"""What happens to containers between start and end: probes, hooks, sidecars, sources, volumes, eviction."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from embedded.node.objects.sources import SourceKind, SourceRef
from embedded.node.pods.worker import PodWorker
from embedded.node.ports import Execution, Services
from embedded.tests.node.pods.test_worker import deleting, play

EXEC = {"exec": {"command": ["check"]}, "periodSeconds": 1}


@pytest.fixture
def quick(services: Services) -> Services:
    """Pauses of probes and hooks take no time worth speaking of."""
    return msgspec.structs.replace(services, sleep=lambda seconds: asyncio.sleep(0.001))


def main_status(api: Any) -> dict[str, Any]:
    return dict(api.statuses[-1]["containerStatuses"][0])


def condition(api: Any, name: str) -> str:
    return next(str(each["status"]) for each in api.statuses[-1]["conditions"] if each["type"] == name)


def test_readiness(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Ready comes and goes with the probe; the container is not touched."""
    worker = PodWorker(pod(containers=[{"readinessProbe": {**EXEC, "failureThreshold": 2}}]), quick)
    runtime.answers["check"] = Execution(1, b"not yet")

    async def script() -> None:
        await eventually(lambda: ("Unhealthy", "Readiness probe failed: not yet") in api.events)
        await eventually(lambda: api.statuses and main_status(api)["started"])
        assert (main_status(api)["ready"], condition(api, "Ready")) == (False, "False")
        for code, ready in ((0, "True"), (1, "False"), (0, "True")):
            runtime.answers["check"] = Execution(code)
            await eventually(lambda wanted=ready: condition(api, "Ready") == wanted)

    play(worker, script)
    assert len(runtime.started) == 1
    assert api.phases == ["Pending", "Running"]


def test_liveness(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Failing too often ends the container, and it starts again."""
    worker = PodWorker(pod(containers=[{"livenessProbe": EXEC}]), quick)
    runtime.answers["check"] = Execution(1, b"sick")

    async def script() -> None:
        # How often it dies before its answer changes is a matter of chance.
        await eventually(lambda: len(runtime.started) >= 2)
        runtime.answers["check"] = Execution(0)
        await eventually(lambda: main_status(api)["restartCount"] >= 1 and condition(api, "Ready") == "True")

    play(worker, script)
    assert [each for each in api.events if each[0] == "Unhealthy"][:3] == [
        ("Unhealthy", "Liveness probe failed: sick")
    ] * 3
    assert ("Killing", "Container main failed liveness probe, will be restarted") in api.events
    assert main_status(api)["lastState"]["terminated"]["exitCode"] == 143


def test_what_cannot_be_tried_kills_nothing(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A probe that errs is told, but says nothing about the container."""
    worker = PodWorker(pod(containers=[{"livenessProbe": {"periodSeconds": 1}}]), quick)

    async def script() -> None:
        await eventually(lambda: len([each for each in api.events if "Liveness probe errored" in each[1]]) > 5)

    play(worker, script)
    assert len(runtime.started) == 1


def test_startup_comes_first(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Until the startup probe passes the others are not made, and the container has not started."""
    probes = {"startupProbe": {"exec": {"command": ["begun"]}, "periodSeconds": 1, "failureThreshold": 99999}}
    worker = PodWorker(pod(containers=[{**probes, "livenessProbe": EXEC}]), quick)
    runtime.answers = {"begun": Execution(1), "check": Execution(0)}

    async def script() -> None:
        await eventually(lambda: runtime.started and len(runtime.started[0].executed) > 5)
        assert ["check"] not in runtime.started[0].executed
        assert (main_status(api)["started"], main_status(api)["ready"]) == (False, False)
        runtime.answers["begun"] = Execution(0)
        await eventually(lambda: ["check"] in runtime.started[0].executed)
        await eventually(lambda: main_status(api)["started"] and main_status(api)["ready"])

    play(worker, script)


def test_startup_failure(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A container that does not come up is ended."""
    worker = PodWorker(pod(restartPolicy="Never", containers=[{"startupProbe": EXEC}]), quick)
    runtime.answers["check"] = Execution(1)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    assert ("Killing", "Container main failed startup probe, will be restarted") in api.events


def test_post_start(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A container runs, for others to see, when its hook is through; a failing hook ends it."""
    hook = {"postStart": {"exec": {"command": ["hook"]}}}
    runtime.answers["hook"] = Execution(1, b"broken")
    worker = PodWorker(pod(restartPolicy="Never", containers=[{"lifecycle": hook}]), quick)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    assert ("FailedPostStartHook", "PostStartHook failed: broken") in api.events
    assert runtime.started[0].executed == [["hook"]]


def test_pre_stop(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The hook runs before SIGTERM, and its failure is told but keeps nobody alive."""
    hook = {"preStop": {"exec": {"command": ["hook"]}}}
    runtime.answers["hook"] = Execution(3, b"broken")
    built = pod(containers=[{"lifecycle": hook}])
    worker = PodWorker(built, quick)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert (runtime.started[0].executed, runtime.started[0].signals) == ([["hook"]], ["TERM"])
    assert ("FailedPreStopHook", "PreStopHook failed: broken") in api.events


def test_pre_stop_has_no_more_than_the_grace(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any
) -> None:
    """A hook that does not end is left alone when the grace is over."""

    async def for_ever(seconds: float) -> None:
        await asyncio.Event().wait()

    built = pod(containers=[{"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}])
    worker = PodWorker(built, msgspec.structs.replace(services, sleep=for_ever))

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(deleting(built, grace=1))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert runtime.started[0].signals == ["TERM"]


def sidecar(**more: Any) -> dict[str, Any]:
    return {"name": "side", "image": "busybox", "command": ["sleep"], "restartPolicy": "Always", **more}


def names(runtime: Any) -> list[str]:
    return [each.container_id for each in runtime.started]


def test_sidecar(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """It starts in its turn, runs beside the containers, starts again when it ends, and goes after them."""
    step = {"name": "step", "image": "busybox", "command": ["true"]}
    built = pod(initContainers=[sidecar(startupProbe={**EXEC, "failureThreshold": 99999}), step])
    worker = PodWorker(built, quick)
    runtime.answers["check"] = Execution(1)

    async def script() -> None:
        await eventually(lambda: runtime.started and runtime.started[0].executed)
        assert names(runtime) == ["side-0"]
        runtime.answers["check"] = Execution(0)
        await eventually(lambda: names(runtime) == ["side-0", "step-0"])
        runtime.started[1].end(0)
        await eventually(lambda: api.phases[-1:] == ["Running"])
        runtime.started[0].end(1)
        await eventually(lambda: names(runtime) == ["side-0", "step-0", "main-0", "side-1"])
        await eventually(lambda: condition(api, "Ready") == "True")
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    killed = [message for reason, message in api.events if reason == "Killing"]
    assert killed == ["Stopping container main", "Stopping container side"]
    assert api.statuses[-1]["initContainerStatuses"][0]["restartCount"] == 1


def test_a_finished_pod_ends_its_sidecars(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A Job's pod succeeds although its sidecar would run for ever."""
    worker = PodWorker(pod(restartPolicy="Never", initContainers=[sidecar()]), quick)

    async def script() -> None:
        await eventually(lambda: names(runtime) == ["side-0", "main-0"])
        runtime.started[1].end(0)
        await eventually(lambda: api.phases[-1:] == ["Succeeded"])

    play(worker, script)
    assert runtime.started[0].signals == ["TERM"]


def test_missing_source_is_tried_again(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The container reads its ConfigMaps at every attempt, so it starts once they are there."""
    wanted = SourceRef(SourceKind.CONFIG_MAP, "c")
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]
    seen: list[Any] = []
    begin = runtime.start

    def start(built: Any, container: Any, count: int, sources: Any) -> Any:
        seen.append(sources.get(wanted))
        return begin(built, container, count, sources)

    runtime.start = start
    worker = PodWorker(pod(restartPolicy="OnFailure", containers=[{"env": env}]), quick)

    async def script() -> None:
        await eventually(lambda: runtime.started)
        api.sources[wanted] = {"k": b"v"}
        runtime.started[0].end(1)
        await eventually(lambda: len(runtime.started) == 2)

    play(worker, script)
    assert seen[:2] == [None, {"k": b"v"}]


def test_server_away_at_a_start(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A container whose sources cannot be read waits for the server."""
    env = [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    worker = PodWorker(pod(containers=[{"env": env}]), quick)
    api.away = True

    async def script() -> None:
        await eventually(lambda: [reason for reason, _ in api.events].count("Failed") > 1)
        assert runtime.started == []
        api.away = False
        await eventually(lambda: runtime.started)

    play(worker, script)


def test_missing_volume_is_tried_again(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Nothing starts before the volumes are there, and the events say why."""
    runtime.lacking_volume = ("v", 'configmap "c" not found')
    worker = PodWorker(pod(), quick)

    async def script() -> None:
        await eventually(lambda: [reason for reason, _ in api.events].count("FailedMount") > 1)
        assert condition(api, "PodReadyToStartContainers") == "False"
        assert main_status(api)["state"]["waiting"]["reason"] == "ContainerCreating"
        runtime.lacking_volume = None
        await eventually(lambda: api.phases[-1:] == ["Running"])

    play(worker, script)
    assert ("FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "c" not found') in api.events


def test_termination_message(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """What the container wrote is in its terminated state, whatever its exit code."""
    runtime.messages["main"] = "all done"
    worker = PodWorker(pod(restartPolicy="Never"), quick)

    async def script() -> None:
        await eventually(lambda: runtime.started)
        runtime.started[0].end(0)
        await eventually(lambda: api.phases[-1:] == ["Succeeded"])

    play(worker, script)
    assert main_status(api)["state"]["terminated"]["message"] == "all done"
    assert runtime.logs_closed == ["main"]


def test_eviction(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Failed with reason Evicted and the condition that Jobs look at; it is not evicted twice."""
    worker = PodWorker(pod(), quick)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        for _ in range(2):
            worker.evict("The node was low on resource: memory. ")
        assert worker.leaving
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    last = api.statuses[-1]
    assert (last["reason"], last["message"]) == ("Evicted", "The node was low on resource: memory. ")
    assert condition(api, "DisruptionTarget") == "True"
    assert [reason for reason, _ in api.events].count("Evicted") == 1


def test_readiness_gate(pod: Any, quick: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The pod becomes ready when somebody else sets the condition it waits for."""
    gates = [{"conditionType": "example.com/go"}]
    worker = PodWorker(pod(readinessGates=gates), quick)
    status = {"conditions": [{"type": "example.com/go", "status": "True"}]}

    async def script() -> None:
        await eventually(lambda: api.statuses and condition(api, "ContainersReady") == "True")
        assert condition(api, "Ready") == "False"
        worker.update(pod(readinessGates=gates, status=status))
        await eventually(lambda: condition(api, "Ready") == "True")

    play(worker, script)
