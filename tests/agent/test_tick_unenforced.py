"""The whole tick on a node that goes idle while a limit is not in force: it lends no more than pods request, and more
again once the limit is back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.ports import TickResult
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY
from tests.agent.playing import Scenario

QUOTA = "cpu/kubepods/besteffort/cpu.cfs_quota_us"
SHARES = "cpu/kubepods/besteffort/cpu.shares"
PERIOD = "cpu/kubepods/besteffort/cpu.cfs_period_us"


@pytest.fixture
def node(tmp_path: Path, build: Any) -> Scenario:
    """Its online pod uses 900m at first."""
    made = Scenario("v1_surge", tmp_path, build)
    for _ in range(12):
        made.linger(1, web=900)
    return made


def full_disk(node: Scenario, *, full: bool = True) -> None:
    """No new state file can be made."""
    assert node.originals is not None
    blocked = node.originals.path.with_name("agent.json.new")
    blocked.mkdir() if full else blocked.rmdir()


def idle(node: Scenario, meanwhile: Callable[[], None] = lambda: None, seconds: int = 15) -> list[TickResult]:
    """The online pod falls to 100m; `meanwhile` happens before each tick."""
    results = []
    for _ in range(seconds):
        meanwhile()
        results.append(node.linger(1, web=100))
        node.executor.idle(20)
    return results


def busy(node: Scenario) -> int:
    """The ceiling while the online pod uses 1700m, more than it requests."""
    for _ in range(12):
        node.linger(1, web=1700)
    return node.quota


def lent(result: TickResult) -> dict[str, int]:
    return {decision.name: decision.value for decision in result.lending.final}


def requested(result: TickResult) -> int:
    return sum(pod.spec.requests[BATCH_CPU] for pod in result.facts.pods or ())


def capped(result: TickResult) -> bool:
    """What pods request, which is no memory here, and for one reason."""
    names = {decision.reason for decision in result.lending.final}
    return lent(result)[BATCH_CPU] <= requested(result) and lent(result)[BATCH_MEMORY] == 0 and len(names) == 1


def test_an_idle_node_lends_more(node: Scenario) -> None:
    """Without a fault, as the measure of the others."""
    before, after = node.results[-1], idle(node)[-1]
    assert lent(after)[BATCH_CPU] > requested(after) >= lent(before)[BATCH_CPU]
    assert after.unenforced == () and after.ready[:2] == ("True", "LendingActive")


@pytest.mark.parametrize(("file", "says"), [(QUOTA, "-1"), (SHARES, "1024")], ids=["quota", "weight"])
def test_a_file_that_cannot_be_written(node: Scenario, file: str, says: str) -> None:
    """From the very tick whose write failed, and until one succeeds."""
    knob = next(knob for knob in node.knobs.all if node.executor.path(knob) == node.file(file))
    node.refusing.refused[knob] = f"{file}: Read-only file system"
    node.file(file).write_text(says)
    results = idle(node)
    assert all(capped(result) for result in results)
    assert {result.ready[:2] for result in results} == {("False", "LimitNotWritten")}
    assert results[-1].ready[2].endswith(f"{file}: Read-only file system")
    assert file.rsplit("/", 1)[1] in {limit.file for limit in results[-1].unenforced}
    assert "not in force (LimitNotWritten)" in results[-1].limits.decisions[knob].detail
    node.refusing.refused.clear()
    found = idle(node, seconds=62)[-1]
    assert found.unenforced == () and lent(found)[BATCH_CPU] > requested(found)


@pytest.mark.parametrize(("file", "loose"), [(QUOTA, "-1"), (SHARES, "1024"), (PERIOD, "10000")])
def test_a_foreign_writer(node: Scenario, file: str, loose: str) -> None:
    """Each tick finds its value gone and writes it again; from the second loss on no more is lent, for 45 s more."""
    node.file(file).write_text(loose)
    node.linger(1, web=900)
    first, *later = idle(node, lambda: node.file(file).write_text(loose))
    assert all(capped(result) for result in later)
    assert {result.ready[:2] for result in later} == {("False", "LimitNotKept")}
    assert len({result.ready[2] for result in later}) == 1, "a message that changes is patched each second"
    recovering = idle(node, seconds=61)
    assert all(capped(result) for result in recovering[:44])
    assert recovering[-1].unenforced == () and lent(recovering[-1])[BATCH_CPU] > requested(first)


def test_a_foreign_writer_between_two_ticks(node: Scenario) -> None:
    """It puts our value back before each tick; the brake saw it."""
    file = node.file(QUOTA)

    def loosen() -> None:
        ours = file.read_text()
        file.write_text("-1")
        node.executor.look(node.knob)
        file.write_text(ours)

    results = idle(node, loosen)
    assert [capped(result) for result in results] == [False, *[True] * 14]


def test_a_pod_that_cannot_be_read(node: Scenario) -> None:
    """What it was promised is not known; both are named, and once it is gone more is lent again."""
    node.cluster.now = msgspec.structs.replace(node.cluster.now, unread_pods=("Pod ns/a: no", "Pod ns/b: no"))
    results = idle(node)
    assert all(capped(result) for result in results)
    assert {result.ready[:2] for result in results} == {("False", Reason.POD_UNREADABLE.value)}
    assert results[-1].ready[2].endswith("Pod ns/a: no, and 1 more")
    node.cluster.now = msgspec.structs.replace(node.cluster.now, unread_pods=())
    found = idle(node)[-1]
    assert found.unenforced == () and lent(found)[BATCH_CPU] > requested(found)


def test_cpus_that_go_offline(node: Scenario) -> None:
    """Online use that cannot rise any more is no idle CPU: neither offer nor ceiling grows, until all are back."""
    ceiling = busy(node)
    node.host.cpus = 1
    results = idle(node)
    assert all(capped(result) for result in results) and results[-1].ready[:2] == ("False", "CpusOffline")
    assert node.quota < ceiling
    node.host.cpus = 2
    assert idle(node)[-1].unenforced == () and node.quota > ceiling


def test_cpus_that_no_pod_may_run_on(tmp_path: Path, build: Any) -> None:
    """A cpuset of v1 does not get a CPU back that was offline for a while: it is idle, and of use to nobody."""
    node = Scenario("v1_surge", tmp_path, build)
    cpus = node.file("cpuset/kubepods/cpuset.cpus")
    cpus.parent.mkdir(parents=True, exist_ok=True)
    cpus.write_text("0-1\n")
    before, ceiling = idle(node, seconds=40)[-1], node.quota
    cpus.write_text("0\n")
    after = idle(node)[-1]
    terms = {term.name: term.value for term in after.lending.reclaimable[0].terms}
    assert terms["reserved"] == -1000 and after.unenforced == ()
    assert lent(after)[BATCH_CPU] < lent(before)[BATCH_CPU] and node.quota < ceiling
    cpus.write_text("0-1\n")
    assert idle(node)[-1].lending.reclaimable[0].value == before.lending.reclaimable[0].value


def test_a_reset_costs_nothing(node: Scenario) -> None:
    """As a daemon-reload makes it: ours is written, lending goes on."""
    node.file(QUOTA).write_text("-1")
    assert all(result.unenforced == () for result in idle(node))


def test_a_full_disk_at_the_first_start(tmp_path: Path, build: Any) -> None:
    """Nothing may be written, since nobody could put it back: no ceiling, no weight, and nothing lent for it."""
    node = Scenario("v1_surge", tmp_path, build)
    full_disk(node)
    results = idle(node)
    assert node.quota == -1 and all(capped(result) for result in results[3:])
    assert {result.ready[:2] for result in results[3:]} == {("False", "StateNotSaved")}
    full_disk(node, full=False)
    found = idle(node)
    assert node.quota > 0 and found[-1].unenforced == () and lent(found[-1])[BATCH_CPU] > requested(found[-1])


def test_a_disk_that_fills_up_later(node: Scenario) -> None:
    """Limits stay in force and follow the load; within a minute no more is lent, before anything needs the disk."""
    held = busy(node)
    full_disk(node)
    results = idle(node, seconds=70)
    assert node.quota > held
    capped_from = [capped(result) for result in results].index(True)
    assert capped_from <= 61 and all(capped(result) for result in results[capped_from:])
    assert {result.ready[1] for result in results[capped_from:]} == {"StateNotSaved"}
    full_disk(node, full=False)
    assert idle(node)[-1].unenforced == ()


def test_an_eviction_that_cannot_be_recorded(node: Scenario) -> None:
    """Nobody is evicted without its record (test_evictor), so nobody new is invited either: from the next tick on."""
    assert node.originals is not None
    full_disk(node)
    with pytest.raises(OSError, match="directory"):
        node.originals.save_again()
    assert all(capped(result) for result in idle(node))


def test_evictions_go_by_what_is_idle(node: Scenario) -> None:
    """A limit that is lost evicts nobody by itself, and spares nobody who would go."""
    node.refusing.refused[node.knob] = "Read-only file system"
    usual = {need.name: need for need in node.results[-1].evictions.needs}
    for result in idle(node):
        for need in result.evictions.needs:
            assert (need.reason is usual[need.name].reason) and need.reason is not Reason.LIMIT_NOT_WRITTEN


@pytest.mark.parametrize("exists", [True, False], ids=["refused", "not there"])
def test_the_brake_on_memory(tmp_path: Path, build: Any, exists: bool) -> None:
    """memory.high counts as the others do; without a memory controller there is none, and eviction works alone."""
    node = Scenario("v2_recorded", tmp_path, build)
    assert node.knobs.memory_high is not None
    if exists:
        node.executor.path(node.knobs.memory_high).write_text("max\n")
    node.refusing.refused[node.knobs.memory_high] = "memory.high: Read-only file system"
    results = node.play_all()
    assert {limit.reason for result in results for limit in result.unenforced} == (
        {Reason.LIMIT_NOT_WRITTEN} if exists else set()
    )
    assert capped(results[-1]) == exists
