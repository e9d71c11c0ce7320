"""The lease is renewed however busy the scheduling loop is, and nothing is written once it is lost."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from kube.leadership import Leadership
from kube.lease import Holder, LeaseSettings
from model.fault import ConfigurationFault
from tests.scheduler.scheduler_processes import Cluster

pytestmark = pytest.mark.e2e

FAST = LeaseSettings(duration_seconds=2.0, renew_deadline_seconds=1.0, retry_seconds=0.1)
PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler"


def lease(cluster: Cluster) -> Any:
    return cluster.request("GET", PATH)


def leadership(kubeconfig: Path, settings: LeaseSettings, name: str, address: str = "") -> Leadership:
    return Leadership(kubeconfig, settings, name, address=address, user_agent="test")


def test_a_busy_loop_keeps_the_lease(cluster: Cluster) -> None:
    """Twice the renew deadline without one turn of the event loop: still the leader, and nobody else could be."""

    async def scene() -> None:
        one = leadership(cluster.kubeconfig, FAST, "one", "10.0.0.1:1")
        two = leadership(cluster.kubeconfig, FAST, "two", "10.0.0.2:1")
        heard: list[Holder] = []
        two.on_holder = heard.append
        async with asyncio.timeout(60), one:
            assert not one.leading()
            await one.acquired.wait()
            async with two:
                until = time.monotonic() + 2 * FAST.renew_deadline_seconds
                while time.monotonic() < until:
                    sum(range(1000))
                assert one.leading() and not one.ended.is_set()
                while not heard:
                    await asyncio.sleep(0.01)
                assert (two.acquired.is_set(), two.leading(), heard) == (False, False, [Holder("one", "10.0.0.1:1")])
        assert not one.leading() and one.error is None

    asyncio.run(scene())
    assert lease(cluster)["spec"]["holderIdentity"] == ""
    assert "sublet.dev/link-address" not in (lease(cluster)["metadata"].get("annotations") or {})


def test_the_fence_falls_without_a_server_and_rises_with_it(cluster: Cluster) -> None:
    """`leading` is false by the deadline. Nobody else took the lease meanwhile, so the same process leads again."""

    async def scene() -> None:
        async with asyncio.timeout(60), leadership(cluster.kubeconfig, FAST, "one") as one:
            await one.acquired.wait()
            cluster.process.send_signal(signal.SIGSTOP)
            gone = time.monotonic()
            while one.leading():
                assert time.monotonic() < gone + FAST.duration_seconds
                await asyncio.sleep(0.01)
            await asyncio.sleep(2 * FAST.duration_seconds)
            assert not one.leading() and not one.ended.is_set()
            cluster.process.send_signal(signal.SIGCONT)
            while not one.leading():
                await asyncio.sleep(0.01)
            assert not one.ended.is_set() and one.error is None

    asyncio.run(scene())
    assert lease(cluster)["spec"]["leaseTransitions"] == 1


def test_another_holder_ends_it_at_once(cluster: Cluster) -> None:
    """Whoever sees another's name on the lease does not wait for its own deadline."""
    slow = LeaseSettings(duration_seconds=3600.0, renew_deadline_seconds=3000.0, retry_seconds=0.1)

    async def scene() -> None:
        async with asyncio.timeout(60), leadership(cluster.kubeconfig, slow, "one") as one:
            await one.acquired.wait()
            taken = {"spec": {"holderIdentity": "two"}}
            await asyncio.to_thread(cluster.request, "PATCH", PATH, taken, "application/merge-patch+json")
            await one.ended.wait()
            assert not one.leading()

    asyncio.run(scene())
    assert lease(cluster)["spec"]["holderIdentity"] == "two"


def test_what_keeps_the_thread_from_campaigning_ends_it(tmp_path: Path) -> None:
    """The process learns of it, instead of standing by for ever."""

    async def scene() -> None:
        async with asyncio.timeout(60), leadership(tmp_path / "none", FAST, "one") as one:
            await one.ended.wait()
            assert isinstance(one.error, ConfigurationFault) and not one.leading()

    asyncio.run(scene())
