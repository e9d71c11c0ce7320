"""Memory of a best-effort pod reclaimed by a real kernel, with swap on the guest's blank disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import msgspec
import pytest

from agent.core.limit.shrink import ReclaimAnswer, ReclaimOrder
from agent.core.observe.observation import NodeSample
from agent.edge.reclaimer import MemoryReclaimer
from cgroup_fixtures.live import MOUNT
from tests.agent.conftest import Build
from tests.guest.inside.live_node import HOLD, MIB, LiveNode, eventually

DISK = "/dev/vda"
STEP = 8 * MIB


@pytest.fixture
def swap() -> Iterator[None]:
    subprocess.run(["mkswap", DISK], check=True, capture_output=True)
    subprocess.run(["swapon", DISK], check=True)
    yield
    subprocess.run(["swapoff", DISK], check=True)


def held(node: LiveNode) -> int:
    return int(node.file(node.job.path, "memory.current").read_text())


def holding(node: LiveNode) -> int:
    """What the pod holds once it has touched all of its memory, and sleeps."""
    node.tree.run(node.job.container, HOLD)
    assert eventually(lambda: held(node) >= 32 * MIB)
    return held(node)


def step(node: LiveNode) -> ReclaimAnswer:
    reclaimer = MemoryReclaimer(MOUNT, node.layout)
    reclaimer.submit((ReclaimOrder(node.job.uid, node.job.path, STEP),))
    assert reclaimer.idle(40)
    (answer,) = reclaimer.drain()
    assert answer.look is not None and not answer.unsupported
    return answer


@pytest.mark.usefixtures("swap")
def test_cold_memory_leaves(node: LiveNode) -> None:
    """Whichever arguments this kernel knows: steps free memory of a process that sleeps, which lives on."""
    before = holding(node)
    answers = [step(node) for _ in range(3)]
    assert any(answer.fruitful for answer in answers)
    assert held(node) <= before - sum(answer.freed_bytes for answer in answers) // 2
    assert node.file(node.job.container, "cgroup.procs").read_text().split()


def test_without_swap_nothing_is_freed(node: LiveNode) -> None:
    """EAGAIN, which is an answer."""
    holding(node)
    assert not step(node).fruitful


@pytest.mark.usefixtures("swap")
def test_a_node_that_runs_short_shrinks_before_it_evicts(node: LiveNode) -> None:
    """Above the mark, below the threshold: memory is reclaimed, nobody is evicted; `max` stands in memory.high."""
    holding(node)
    sample = node.host.sample()
    assert isinstance(sample, NodeSample) and sample.swap_free_bytes >= 32 * MIB
    # A node of which 78 % are in use, far from mark and evictions: what tests before this one used may still go.
    size = Build().node(memory=sample.memory_used_bytes * 100 // 78)
    eviction = msgspec.structs.replace(node.facts.settings.eviction, memory_threshold_pct=90, shrink_margin_pct=25)
    settings = msgspec.structs.replace(node.facts.settings, eviction=eviction)
    node.cluster.now = msgspec.structs.replace(node.facts, node=size, settings=settings)
    shrunk = node.tick_until(lambda result: result.shrink.fruitful_steps > 0)
    assert shrunk.shrink.reclaimed_bytes >= MIB and node.evictor.requests == []
    assert node.file(node.job.path, "memory.high").read_text() == "max\n"
