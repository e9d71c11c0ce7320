"""The reconcile loop: one worker a key, a back-off for those that fail, nothing while another leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube.reconcile import Reconciler, retry_seconds
from model.fault import KubernetesFault


class Work:
    """Notes what is worked on; a key in `held` takes until its event is set, one in `faults` fails as often."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.most = 0
        self.running: list[str] = []
        self.held: dict[str, asyncio.Event] = {}
        self.faults: dict[str, list[int]] = {}

    async def __call__(self, key: str) -> None:
        self.running.append(key)
        self.most = max(self.most, self.running.count(key))
        if key in self.held:
            await self.held[key].wait()
        await asyncio.sleep(0)
        self.running.remove(key)
        if self.faults.get(key):
            raise KubernetesFault(key, "no", status=self.faults[key].pop(0))
        self.done.append(key)


def run(reconciler: Reconciler, body: Callable[[], Any]) -> None:
    async def both() -> None:
        serving = asyncio.create_task(reconciler.run())
        async with asyncio.timeout(20):
            await body()
        serving.cancel()

    asyncio.run(both())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def test_a_key_is_worked_on_once_for_all_who_added_it_and_again_for_who_did_meanwhile() -> None:
    """Others go on beside it."""
    work = Work()
    reconciler = Reconciler(work, lambda: True)

    async def body() -> None:
        work.held["a"] = asyncio.Event()
        reconciler.add("a")
        reconciler.add("a")
        await until(lambda: work.running == ["a"])
        for key in ("a", "b", "a"):
            reconciler.add(key)
        await until(lambda: work.done == ["b"])
        work.held["a"].set()
        await until(lambda: work.done == ["b", "a", "a"])

    run(reconciler, body)
    assert work.most == 1


def test_one_that_fails_rests_and_its_fault_is_told() -> None:
    """A refusal is asked again after a minute, anything else sooner, and later each time; the others do not wait."""
    work, told = Work(), list[tuple[str, int, float]]()
    reconciler = Reconciler(work, lambda: True, lambda key, fault, rest: told.append((key, fault.status, rest)))

    async def body() -> None:
        work.faults = {"a": [403], "b": [503, 0]}
        for key in "abc":
            reconciler.add(key)
        await until(lambda: work.done == ["c"] and len(told) == 2)
        reconciler.add("b")
        await until(lambda: len(told) == 3)
        reconciler.add("b")
        await until(lambda: work.done == ["c", "b"])
        work.faults["b"] = [500]
        reconciler.add("b")
        await until(lambda: len(told) == 4)

    run(reconciler, body)
    assert told == [("a", 403, 60.0), ("b", 503, 5.0), ("b", 0, 10.0), ("b", 500, 5.0)]


def test_one_that_is_added_while_it_fails_is_looked_at_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may change an object that the API server refuses had it tried once more each minute for each change."""
    monkeypatch.setattr("kube.reconcile._FIRST_RETRY_SECONDS", 0.2)
    tries = [0]

    async def work(key: str) -> None:
        tries[0] += 1
        raise KubernetesFault(key, "no", status=0)

    reconciler = Reconciler(work, lambda: True)

    async def body() -> None:
        monkeypatch.setattr("kube.reconcile._LONGEST_RETRY_SECONDS", 0.2)
        for wanted in range(1, 11):
            reconciler.add("a")
            await until(lambda wanted=wanted: tries[0] == wanted)
        await asyncio.sleep(0.3)
        assert tries[0] == 11

    run(reconciler, body)


def test_nothing_is_worked_on_while_another_leads() -> None:
    """It waits, and is done once this process leads."""
    work, leads = Work(), [False]
    reconciler = Reconciler(work, lambda: leads[0])

    async def body() -> None:
        reconciler.add("a")
        await asyncio.sleep(0.05)
        assert not work.done and not work.running
        leads[0] = True
        await until(lambda: work.done == ["a"])

    run(reconciler, body)


@pytest.mark.parametrize(
    ("status", "failures", "seconds"), [(0, 1, 5.0), (503, 3, 20.0), (500, 9, 60.0), (500, 99, 60.0), (409, 1, 60.0)]
)
def test_back_off(status: int, failures: int, seconds: float) -> None:
    assert retry_seconds(KubernetesFault("x", "no", status=status), failures) == seconds
