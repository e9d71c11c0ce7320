"""Page cache that an online pod reads again and again while kubepods' limit takes it away: each kernel shows it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from agent.core.evict.last_resort import urgency
from agent.ports import TickResult
from model.reason import Reason
from tests.guest.inside.live_node import MIB, LiveNode

LIMIT = 40 * MIB
DISK = "/dev/vda"
# Opened once: the last one who closes a block device drops its cache.
READ_AGAIN = f"""
disk = open({DISK!r}, "rb", buffering=0)
while True:
    disk.seek(0)
    while disk.read(1 << 20):
        pass
"""


@pytest.fixture
def limited(node: LiveNode) -> Iterator[LiveNode]:
    """Less for all pods than the disk is large."""
    assert int(subprocess.run(["blockdev", "--getsize64", DISK], capture_output=True, check=True).stdout) > LIMIT
    node.file(node.place.root, "memory.max").write_text(str(LIMIT))
    yield node
    node.file(node.place.root, "memory.max").write_text("max")


def test_thrashing_is_seen_whatever_the_kernel_counts_as_stalls(limited: LiveNode) -> None:
    """Linux 6.16 and newer count few of these waits as `full` stalls; the pages read back are counted by all."""
    limited.tree.run(limited.web.container, READ_AGAIN)
    seen = limited.tick_until(_thrashes)
    refaulted, strategy = seen.evictions.refaulted, limited.facts.settings.eviction
    assert refaulted is not None and limited.facts.node is not None
    assert [term.name for term in refaulted.terms][:2] == ["read back by all pods", "by best effort"]
    assert urgency(seen.observation, limited.facts.node, strategy, refaulted)


def test_a_best_effort_pod_that_reads_again_is_nobodys_shortage(limited: LiveNode) -> None:
    """It holds what is taken, and reads it back itself: stalls of best effort alone are not urgent."""
    limited.tree.run(limited.job.container, READ_AGAIN)
    seen = limited.tick_until(lambda result: _read_back(result) > LIMIT)
    refaulted = seen.evictions.refaulted
    assert refaulted is not None and refaulted.reason is Reason.WITHIN_THRESHOLD and refaulted.value == 0


def _thrashes(result: TickResult) -> bool:
    refaulted = result.evictions.refaulted
    return refaulted is not None and refaulted.reason is Reason.THRASHING


def _read_back(result: TickResult) -> int:
    """Bytes that all pods read back within the window."""
    refaulted = result.evictions.refaulted
    return 0 if refaulted is None else max(term.value for term in refaulted.terms)
