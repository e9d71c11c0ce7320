"""One pod from admission to deletion, over fakes of the runtime and the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from embedded.node.images.commands import Missing, Refused
from embedded.node.objects.pod import KubeletPodSpec, PodObject
from embedded.node.objects.sources import SourceKind, SourceRef, TokenRef
from embedded.node.pods.admission import Rejection
from embedded.node.pods.worker import PodWorker
from embedded.node.ports import Services


def deleting(pod: PodObject, grace: int = 30) -> PodObject:
    metadata = msgspec.structs.replace(
        pod.metadata, deletion_timestamp="2030-01-01T00:00:00Z", deletion_grace_period_seconds=grace
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def play(worker: PodWorker, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the worker beside a script; afterwards the object vanishes and the worker must end."""

    async def both() -> None:
        task = asyncio.create_task(worker.run())
        try:
            await script()
        finally:
            worker.vanish()
            await asyncio.wait_for(task, 20)

    asyncio.run(both())


@pytest.mark.parametrize(
    ("policy", "code", "phases", "starts"),
    [
        pytest.param("Never", 0, ["Pending", "Running", "Succeeded"], 1, id="never, success"),
        pytest.param("Never", 3, ["Pending", "Running", "Failed"], 1, id="never, failure"),
        pytest.param("OnFailure", 0, ["Pending", "Running", "Succeeded"], 1, id="on failure, success"),
        pytest.param("OnFailure", 3, ["Pending", "Running"], 3, id="on failure, failure"),
        pytest.param("Always", 0, ["Pending", "Running"], 3, id="always"),
    ],
)
def test_restart_policy(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any,
    policy: str, code: int, phases: list[str], starts: int,
) -> None:  # fmt: skip
    """Containers start again exactly when the policy says so, and the phase follows."""
    worker = PodWorker(pod(restartPolicy=policy), services)

    async def script() -> None:
        for number in range(starts):
            await eventually(lambda wanted=number + 1: len(runtime.started) == wanted)
            await eventually(lambda: api.phases[-1:] == ["Running"])
            if number + 1 < starts or starts == 1:
                runtime.started[-1].end(code)
        await eventually(lambda: api.phases == phases)

    play(worker, script)
    assert len(runtime.started) == starts


def test_crash_loop(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The second quick end waits in CrashLoopBackOff, with the last end and the count in the status."""
    worker = PodWorker(pod(), msgspec.structs.replace(services, backoff_base_seconds=3600))

    def status() -> dict[str, Any]:
        return dict(api.statuses[-1]["containerStatuses"][0])

    async def script() -> None:
        for number in (1, 2):
            await eventually(lambda wanted=number: len(runtime.started) == wanted)
            runtime.started[-1].end(5)
        await eventually(lambda: api.statuses and "waiting" in status()["state"] and status()["restartCount"] == 1)
        assert status()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert "back-off 3600s restarting failed container=main" in status()["state"]["waiting"]["message"]
        assert status()["lastState"]["terminated"]["exitCode"] == 5
        assert "BackOff" in [reason for reason, _ in api.events]

    play(worker, script)


@pytest.mark.parametrize(
    ("code", "oom_killed", "reason"),
    [
        pytest.param(0, False, "Completed", id="success"),
        pytest.param(1, False, "Error", id="failure"),
        pytest.param(137, True, "OOMKilled", id="out of memory"),
        pytest.param(0, True, "Completed", id="a child died, the container recovered"),
    ],
)
def test_reason(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, code: int, oom_killed: bool, reason: str
) -> None:
    """How a container ended is in its terminated state."""
    worker = PodWorker(pod(restartPolicy="Never"), services)

    async def script() -> None:
        await eventually(lambda: runtime.started)
        runtime.started[0].end(code, oom_killed=oom_killed)
        await eventually(lambda: api.phases[-1:] in (["Failed"], ["Succeeded"]))

    play(worker, script)
    ended = api.statuses[-1]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (code, reason)


def test_graceful_deletion(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """SIGTERM, a final status, then the object is deleted; nothing is killed that obeys."""
    built = pod()
    worker = PodWorker(built, services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert runtime.started[0].signals == ["TERM"]
    assert (api.phases[-1], runtime.removed) == ("Failed", ["u-1"])
    assert api.statuses[-1]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_status_before_deletion(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The object is not deleted before the server has the final status."""
    built = pod()
    worker = PodWorker(built, services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        api.hold = asyncio.Event()
        worker.update(deleting(built))
        await eventually(lambda: runtime.removed == ["u-1"])
        await asyncio.sleep(0.05)
        assert api.deleted == []
        api.hold.set()
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert api.phases[-1] == "Failed"


def test_shorter_grace_follows(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A stubborn container is killed after the grace, and a second deletion may shorten it."""
    built = pod()
    worker = PodWorker(built, services)
    runtime.stubborn = True

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(deleting(built, grace=3600))
        await eventually(lambda: runtime.started[0].signals == ["TERM"])
        worker.update(deleting(built, grace=0))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert runtime.started[0].signals == ["TERM", "KILL"]


def test_vanished(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """An object that is gone costs its processes at once, and nobody is told."""
    worker = PodWorker(pod(), services)
    runtime.stubborn = True

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])

    play(worker, script)
    assert runtime.started[0].signals == ["TERM", "KILL"]
    assert (runtime.removed, api.deleted, api.phases) == (["u-1"], [], ["Pending", "Running"])


def test_deleted_while_backing_off(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A container that waits to start again shows its last end, and does not start again."""
    built = pod(metadata={"uid": "u-1"}, containers=[{"name": "main"}])
    worker = PodWorker(built, msgspec.structs.replace(services, backoff_base_seconds=3600))
    runtime.refusals = {"main": Missing('exec: "x": executable file not found in $PATH')}

    async def script() -> None:
        await eventually(lambda: api.statuses and "CrashLoopBackOff" in str(api.statuses[-1]))
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    ended = api.statuses[-1]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)


def test_refused_container_waits(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """What the pod itself rules out is said in the waiting state; the pod stays Pending and can be deleted."""
    built = pod()
    worker = PodWorker(built, services)
    runtime.refusals = {"main": Refused("CreateContainerConfigError", "volume v cannot be mounted")}

    async def script() -> None:
        await eventually(lambda: api.statuses and "CreateContainerConfigError" in str(api.statuses[-1]))
        assert api.phases == ["Pending"]
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)
    assert ("Failed", "Error: volume v cannot be mounted") in api.events


def test_rejected(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A rejected pod is Failed with reason and message, runs nothing and holds nothing."""
    worker = PodWorker(pod(), services, Rejection("OutOfcpu", "Pod was rejected: Node didn't have enough"))

    async def script() -> None:
        await eventually(lambda: api.statuses)

    play(worker, script)
    assert (api.statuses[0]["phase"], api.statuses[0]["reason"]) == ("Failed", "OutOfcpu")
    assert (runtime.started, worker.holds_resources) == ([], False)
    assert api.events == [("OutOfcpu", "Node didn't have enough")]


def test_init_containers(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Init containers run one after the other; the rest starts when all have succeeded."""
    inits = [{"name": name, "image": "busybox", "command": ["true"]} for name in ("first", "second")]
    worker = PodWorker(pod(initContainers=inits), services)

    async def script() -> None:
        for name in ("first", "second", "main"):
            await eventually(lambda wanted=name: runtime.started and runtime.started[-1].container_id == f"{wanted}-0")
            if name != "main":
                runtime.started[-1].end(0)
        await eventually(lambda: api.phases == ["Pending", "Running"])

    play(worker, script)
    assert len(runtime.started) == 3


def test_failed_init_ends_the_pod(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """With restartPolicy Never a broken init container fails the pod before its containers start."""
    inits = [{"name": "first", "image": "busybox", "command": ["false"]}]
    worker = PodWorker(pod(initContainers=inits, restartPolicy="Never"), services)

    async def script() -> None:
        await eventually(lambda: runtime.started)
        runtime.started[0].end(1)
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    assert len(runtime.started) == 1


def test_active_deadline(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Past activeDeadlineSeconds the pod is stopped and Failed with DeadlineExceeded."""
    worker = PodWorker(pod(activeDeadlineSeconds=0), services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    assert api.statuses[-1]["reason"] == "DeadlineExceeded"


def test_server_away(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Containers live on without an API server; when it is back it gets the newest status, not the history."""
    worker = PodWorker(pod(restartPolicy="Never"), services)
    api.away = True

    async def script() -> None:
        await eventually(lambda: runtime.started)
        runtime.started[0].end(0)
        await eventually(lambda: runtime.removed == ["u-1"])
        assert api.statuses == []
        api.away = False
        await eventually(lambda: api.statuses)

    play(worker, script)
    assert api.phases == ["Succeeded"]


def test_unrepeatable_refusal(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A status that the server calls invalid is not sent for ever, and the pod can still be deleted."""
    built = pod()
    worker = PodWorker(built, services)
    api.refusal = 422

    async def script() -> None:
        await eventually(lambda: runtime.started)
        await asyncio.sleep(0)
        api.refusal = 0
        worker.update(deleting(built))
        await eventually(lambda: api.deleted == ["u-1"])

    play(worker, script)


@pytest.mark.parametrize(
    ("policy", "phase", "starts"),
    [
        pytest.param("Always", "Running", 1, id="always: starts again"),
        pytest.param("OnFailure", "Running", 1, id="on failure: it was killed, so it starts again"),
        pytest.param("Never", "Failed", 0, id="never: lost for good"),
    ],
)
def test_after_a_node_restart(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, policy: str, phase: str, starts: int
) -> None:
    """What ran when the node died is lost; restartPolicy says what follows."""
    ran = {"name": "main", "restartCount": 2, "state": {"running": {"startedAt": "2029-12-31T00:00:00Z"}}}
    status = {"phase": "Running", "startTime": "2029-12-31T00:00:00Z", "containerStatuses": [ran]}
    worker = PodWorker(pod(restartPolicy=policy, status=status), services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == [phase] and len(runtime.started) == starts)

    play(worker, script)
    assert api.statuses[-1]["containerStatuses"][0]["restartCount"] == 2 + starts
    assert api.statuses[-1]["startTime"] == "2029-12-31T00:00:00Z"
    assert "ContainerStatusUnknown" in str(api.statuses[-1])


def test_finished_pod_stays_finished(pod: Any, services: Services, api: Any, runtime: Any) -> None:
    """A pod that had ended before the node started runs nothing and holds nothing."""
    worker = PodWorker(pod(status={"phase": "Succeeded"}), services)

    async def script() -> None:
        await asyncio.sleep(0.05)

    play(worker, script)
    assert (runtime.started, api.statuses, worker.holds_resources) == ([], [], False)


def test_run_down_is_silent(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """When the node stops, processes end but the status stays as it was, so that the next start takes the pod up."""
    worker = PodWorker(pod(), services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.run_down()
        await worker.quiet.wait()

    play(worker, script)
    assert (api.phases, api.deleted) == (["Pending", "Running"], [])


def test_events_are_bounded(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A crash loop posts no more than 25 events at once."""
    worker = PodWorker(pod(), msgspec.structs.replace(services, backoff_base_seconds=0.0001))
    runtime.refusals = {"main": Missing("no such program")}

    async def script() -> None:
        await eventually(lambda: api.statuses and api.statuses[-1]["containerStatuses"][0]["restartCount"] > 40)

    play(worker, script)
    assert len(api.events) == 25


def test_a_deadline_that_changes(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """One set, or brought forward, while the pod runs counts from the pod's start."""
    worker = PodWorker(pod(activeDeadlineSeconds=100_000), services)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(pod(activeDeadlineSeconds=0))
        await eventually(lambda: api.phases[-1:] == ["Failed"])

    play(worker, script)
    assert api.statuses[-1]["reason"] == "DeadlineExceeded"


def test_files_follow(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """While the pod runs its volumes are filled again; what is lacking for a while is an event, and no end."""
    ref = SourceRef(SourceKind.CONFIG_MAP, "c")
    api.sources[ref] = {"a": b"1"}
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "x"}}]}}
    volumes = [{"name": "v", "configMap": {"name": "c"}}, {"name": "t", **token}]
    worker = PodWorker(pod(volumes=volumes), msgspec.structs.replace(services, volume_seconds=0.005))

    async def script() -> None:
        await eventually(lambda: runtime.written)
        api.sources[ref] = {"a": b"2"}
        await eventually(lambda: runtime.written[-1].found == {ref: {"a": b"2"}})
        runtime.lacking_volume = ("v", "gone")
        await eventually(lambda: ("FailedMount", 'MountVolume.SetUp failed for volume "v" : gone') in api.events)
        runtime.lacking_volume = None
        seen, api.away = len(runtime.written), True
        await eventually(lambda: api.refused)
        api.away = False
        await eventually(lambda: len(runtime.written) > seen)

    play(worker, script)
    assert api.tokens_asked == [TokenRef("x", 3600)], "one is enough for an hour"
    assert list(runtime.written[-1].tokens.values()) == [b"x-1"]
    assert len(runtime.started) == 1


def test_files_follow_annotations_at_once(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any
) -> None:
    """What a pod is told is no news ten seconds later; a change of anything else moves no file."""
    item = {"path": "told", "fieldRef": {"fieldPath": "metadata.annotations['told']"}}
    volumes = [{"name": "v", "downwardAPI": {"items": [item]}}]
    worker = PodWorker(pod(volumes=volumes), msgspec.structs.replace(services, volume_seconds=3600.0))

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        worker.update(pod(volumes=volumes, activeDeadlineSeconds=600))
        before = worker.pod
        assert runtime.written == []
        metadata = msgspec.structs.replace(before.metadata, annotations={"told": "to go"})
        worker.update(msgspec.structs.replace(before, metadata=metadata))
        await eventually(lambda: runtime.written)

    play(worker, script)


def test_nothing_to_follow(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A pod without such volumes costs no request while it runs."""
    fast = msgspec.structs.replace(services, volume_seconds=0.001)
    worker = PodWorker(pod(volumes=[{"name": "d", "emptyDir": {}}]), fast)

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])

    play(worker, script)
    assert (runtime.written, api.tokens_asked) == ([], [])


def test_address(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """The status shows where the pod is once its volumes are there, and not before."""
    runtime.lacking_volume = ("v", "not yet")
    worker = PodWorker(pod(), services)

    async def script() -> None:
        await eventually(lambda: api.statuses)
        assert "podIP" not in api.statuses[-1]
        runtime.lacking_volume = None
        await eventually(lambda: api.phases[-1:] == ["Running"])

    play(worker, script)
    assert (api.statuses[-1]["podIP"], api.statuses[-1]["podIPs"]) == (worker.pod.address, [{"ip": "127.65.0.9"}])


def test_ephemeral_containers_are_refused(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any
) -> None:
    """In the status, an Event and in place of their log: kubectl debug shows one of them, whatever it waits for."""
    given = pod()
    worker = PodWorker(given, services)
    debugged = msgspec.convert(
        {"containers": [{"name": "main", "image": "busybox"}], "ephemeralContainers": [{"name": "dbg", "image": "b"}]},
        KubeletPodSpec,
    )

    async def script() -> None:
        await eventually(lambda: api.phases[-1:] == ["Running"])
        for _ in range(2):
            worker.update(msgspec.structs.replace(given, spec=debugged))
        await eventually(lambda: "ephemeralContainerStatuses" in api.statuses[-1])
        (told,) = api.statuses[-1]["ephemeralContainerStatuses"]
        assert (told["name"], told["state"]["terminated"]["exitCode"]) == ("dbg", 128)
        assert "no ephemeral containers" in told["state"]["terminated"]["message"]
        assert "no ephemeral containers" in str(worker.log_file("dbg", previous=False))

    play(worker, script)
    assert len([each for each in api.events if "dbg" in str(each)]) == 1
