"""A pod's size while it runs: allocated, brought in force, told.

https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from embedded.node.objects.pod import NodeObject
from embedded.node.pods.kubelet import Kubelet
from embedded.node.ports import Services


def asks(cpu: str, **more: Any) -> list[dict[str, Any]]:
    return [{"resources": {"requests": {"cpu": cpu}}, **more}]


def play(services: Services, script: Callable[[Kubelet], Coroutine[Any, Any, None]]) -> None:
    """On a node of two CPUs."""
    node = msgspec.convert({"status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}}}, NodeObject)
    kubelet = Kubelet(services, lambda: node)

    async def both() -> None:
        task = asyncio.create_task(kubelet.run())
        await script(kubelet)
        await kubelet.stop(20)
        task.cancel()

    asyncio.run(both())


def conditions(status: dict[str, Any]) -> dict[str, str | None]:
    """Of a resize, those that hold, with their reasons."""
    return {
        each["type"]: each.get("reason")
        for each in status["conditions"]
        if each["type"].startswith("PodResize") and "$patch" not in each
    }


def amounts(status: dict[str, Any]) -> tuple[str, str]:
    container = status["containerStatuses"][0]
    return container["allocatedResources"]["cpu"], container["resources"]["requests"]["cpu"]


@pytest.fixture
def last(api: Any) -> Callable[[], dict[str, Any]]:
    return lambda: dict(api.statuses[-1])


def test_in_place(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, last: Any) -> None:
    """The container goes on with its new amounts, its pod's cgroup is widened first, and the status says so."""

    async def script(kubelet: Kubelet) -> None:
        kubelet.observe(pod(containers=asks("500m")))
        await eventually(lambda: api.phases[-1:] == ["Running"])
        assert amounts(last()) == ("500m", "500m")
        kubelet.observe(pod(containers=asks("1500m")))
        await eventually(lambda: amounts(last()) == ("1500m", "1500m") and conditions(last()) == {})

    play(services, script)
    assert runtime.sizes == [("pod", ["500m"], ["1500m"]), ("main-0", "1500m"), ("pod", ["1500m"], ["1500m"])]
    assert len(runtime.started) == 1 and runtime.burstable_millis[:2] == [500, 1500]
    assert [reason for reason, _ in api.events if reason.startswith("Resize")] == ["ResizeStarted", "ResizeCompleted"]


def test_restart(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, last: Any) -> None:
    """Where the policy asks for it the container starts again, at once, and the pod is in progress until it has."""
    policy = {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}

    async def script(kubelet: Kubelet) -> None:
        runtime.stubborn = True
        kubelet.observe(pod(containers=asks("500m", **policy), restartPolicy="OnFailure"))
        await eventually(lambda: api.phases[-1:] == ["Running"])
        kubelet.observe(pod(containers=asks("1500m", **policy), restartPolicy="OnFailure"))
        await eventually(lambda: conditions(last()) == {"PodResizeInProgress": None})
        assert amounts(last()) == ("1500m", "500m") and runtime.started[0].signals == ["TERM"]
        runtime.started[0].end(0)
        await eventually(lambda: amounts(last()) == ("1500m", "1500m") and conditions(last()) == {})
        assert last()["containerStatuses"][0]["restartCount"] == 1

    play(services, script)
    assert [size for size in runtime.sizes if size[0] != "pod"] == []


PENDING = {"no room now": ("1500m", "Deferred"), "never any": ("3", "Infeasible")}


@pytest.mark.parametrize(("wanted", "reason"), PENDING.values(), ids=PENDING)
def test_pending(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, wanted: str, reason: str
) -> None:
    """The pod keeps what it has, says why, and gets what was deferred once another pod has ended."""
    other = {"metadata": {"uid": "2", "name": "other"}, "restartPolicy": "Never"}

    def mine() -> dict[str, Any]:
        return dict([each for each in api.statuses if each["containerStatuses"][0]["name"] == "main"][-1])

    async def script(kubelet: Kubelet) -> None:
        kubelet.observe(pod(containers=asks("500m")))
        kubelet.observe(pod(containers=asks("1", name="job"), **other))
        await eventually(lambda: len(runtime.started) == 2 and amounts(mine()) == ("500m", "500m"))
        kubelet.observe(pod(containers=asks(wanted)))
        await eventually(lambda: conditions(mine()) == {"PodResizePending": reason})
        assert amounts(mine()) == ("500m", "500m") and runtime.sizes == []
        next(each for each in runtime.started if each.container_id == "job-0").end(0)
        if reason == "Deferred":
            await eventually(lambda: amounts(mine()) == (wanted, wanted) and conditions(mine()) == {})
            return
        await eventually(lambda: runtime.removed)
        kubelet.observe(pod(containers=asks("500m")))
        await eventually(lambda: conditions(mine()) == {})

    play(services, script)
    assert ("Resize" + reason) in [told for told, _ in api.events]


def test_tried_again(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any, last: Any) -> None:
    """While the kernel refuses, for memory that is held, the resize is in progress with an error."""

    async def script(kubelet: Kubelet) -> None:
        kubelet.observe(pod(containers=asks("500m")))
        await eventually(lambda: api.phases[-1:] == ["Running"])
        runtime.resize_fault = "attempting to set container"
        kubelet.observe(pod(containers=asks("100m")))
        await eventually(lambda: conditions(last()) == {"PodResizeInProgress": "Error"})
        assert amounts(last()) == ("100m", "500m")
        runtime.resize_fault = ""
        await eventually(lambda: conditions(last()) == {} and amounts(last()) == ("100m", "100m"))

    play(msgspec.structs.replace(services, volume_seconds=0.02), script)


def test_conditions_that_are_over_are_deleted(
    pod: Any, services: Services, api: Any, eventually: Any, last: Any
) -> None:
    """Also those that an earlier run of the node reported."""
    old = {"type": "PodResizePending", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}

    async def script(kubelet: Kubelet) -> None:
        kubelet.observe(pod(containers=asks("500m"), status={"conditions": [old]}))
        await eventually(lambda: api.phases[-1:] == ["Running"])
        assert {"$patch": "delete", "type": "PodResizePending"} in last()["conditions"]

    play(services, script)
