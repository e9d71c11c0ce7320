"""All pods of a node: judged once in order, run, reported, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from embedded.node.objects.pod import NodeObject
from embedded.node.pods.kubelet import Kubelet
from embedded.node.ports import Services


def asks(cpu: str) -> list[dict[str, Any]]:
    return [{"resources": {"requests": {"cpu": cpu}}}]


def node(**allocatable: str) -> NodeObject:
    return msgspec.convert({"status": {"allocatable": {"pods": "110", **allocatable}}}, NodeObject)


def play(kubelet: Kubelet, script: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def both() -> None:
        task = asyncio.create_task(kubelet.run())
        await script()
        await kubelet.stop(20)
        task.cancel()

    asyncio.run(both())


def rejected(api: Any) -> list[str]:
    return [status["reason"] for status in api.statuses if "reason" in status]


def test_oldest_first(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Pods found at the start are judged by age, not by name."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))
    for name, age in (("a-young", "2030-01-02T00:00:00Z"), ("b-old", "2030-01-01T00:00:00Z")):
        metadata = {"name": name, "uid": name, "creationTimestamp": age}
        kubelet.observe(pod(metadata=metadata, containers=asks("1500m")))
    api.allocatable = {"cpu": "2", "pods": "110"}

    async def script() -> None:
        await eventually(lambda: rejected(api) == ["OutOfcpu"] and runtime.started)
        worker = kubelet.worker_of("shop", "b-old")
        assert worker is not None and worker.holds_resources

    play(kubelet, script)


def test_freed_room_is_used(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A finished pod counts no more, and the Burstable weight follows."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))
    api.allocatable = {"cpu": "2", "pods": "110"}

    async def script() -> None:
        first = pod(metadata={"uid": "1", "name": "one"}, containers=asks("1500m"), restartPolicy="Never")
        kubelet.observe(first)
        await eventually(lambda: runtime.started)
        runtime.started[0].end(0)
        await eventually(lambda: runtime.removed == ["1"])
        kubelet.observe(pod(metadata={"uid": "2", "name": "two"}, containers=asks("1500m")))
        await eventually(lambda: len(runtime.started) == 2)

    play(kubelet, script)
    assert rejected(api) == []
    assert runtime.burstable_millis[:3] == [1500, 0, 1500]


def test_stale_watch_is_checked(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """Before a rejection the Node is read afresh: its watch may lag behind a new allocatable."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))
    api.allocatable = {"cpu": "2", "pods": "110", "kubernetes.io/batch-cpu": "1000"}
    batch = [{"resources": {"requests": {"kubernetes.io/batch-cpu": "500"}}}]

    async def script() -> None:
        kubelet.observe(pod(containers=batch))
        await eventually(lambda: runtime.started)

    play(kubelet, script)


def test_running_pods_are_not_judged_again(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any
) -> None:
    """Allocatable may shrink below what runs."""
    seen = [node(cpu="2")]
    kubelet = Kubelet(services, lambda: seen[0])

    async def script() -> None:
        built = pod(containers=asks("1500m"))
        kubelet.observe(built)
        await eventually(lambda: runtime.started)
        seen[0] = node(cpu="1")
        kubelet.observe(built)
        await eventually(lambda: api.phases[-1:] == ["Running"])
        assert runtime.started[0].signals == []

    play(kubelet, script)
    assert rejected(api) == []


def test_same_name_again(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A pod deleted and made again under the same name is another pod; logs are those of the newest."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))

    async def script() -> None:
        first, second = pod(metadata={"uid": "1"}), pod(metadata={"uid": "2"})
        kubelet.observe(first)
        await eventually(lambda: len(runtime.started) == 1)
        kubelet.observe(first, gone=True)
        kubelet.observe(second)
        await eventually(lambda: len(runtime.started) == 2 and runtime.removed == ["1"])
        worker = kubelet.worker_of("shop", "web")
        assert worker is not None and worker.pod.uid == "2"

    play(kubelet, script)


def test_unreadable_amount(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A pod whose amounts cannot be read fails with a reason; the node goes on with the next."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))

    async def script() -> None:
        kubelet.observe(pod(metadata={"uid": "1"}, containers=asks("much")))
        kubelet.observe(pod(metadata={"uid": "2", "name": "next"}))
        await eventually(lambda: runtime.started)

    play(kubelet, script)
    assert rejected(api) == ["UnexpectedAdmissionError"]


def test_stop_leaves_the_stubborn_to_one_kill_of_all(
    pod: Any, services: Services, api: Any, runtime: Any, eventually: Any
) -> None:
    """Every container is told to end; past the grace the cgroups are emptied as a whole, not one by one."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))
    runtime.stubborn = True

    async def script() -> None:
        task = asyncio.create_task(kubelet.run())
        for uid in ("1", "2"):
            kubelet.observe(pod(metadata={"uid": uid, "name": uid}))
        await eventually(lambda: len(runtime.started) == 2)
        await kubelet.stop(0.05)
        task.cancel()

    asyncio.run(script())
    assert [container.signals for container in runtime.started] == [["TERM"], ["TERM"]]


def test_stop_kills_who_does_not_heed_it(pod: Any, services: Services, api: Any, runtime: Any, eventually: Any) -> None:
    """A container without a handler for SIGTERM is not waited for when the node itself stops."""
    kubelet = Kubelet(services, lambda: node(cpu="2"))

    async def script() -> None:
        task = asyncio.create_task(kubelet.run())
        kubelet.observe(pod())
        await eventually(lambda: runtime.started)
        runtime.started[0].deaf = True
        await kubelet.stop(3600)
        task.cancel()

    asyncio.run(script())
    assert runtime.started[0].signals == ["TERM", "KILL"]


def test_no_such_log(pod: Any, services: Services) -> None:
    """An unknown pod has a sentence for a log."""
    assert "is not on this node" in str(Kubelet(services, lambda: None).log_file("a", "b", "c", previous=False))
