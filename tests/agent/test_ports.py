"""What the tick's facts become for each decision."""

from __future__ import annotations

from typing import Any

import pytest

from model.node import Node
from model.nodecolocation import NodeColocation
from model.resources import CPU, MEMORY, ResourceVector

RAW: dict[str, tuple[ResourceVector | None, int | None]] = {
    "not amplified": (None, None),
    "amplified": (ResourceVector({CPU: 3500}), 3500),
    "another resource is": (ResourceVector({MEMORY: 1}), None),
}


@pytest.mark.parametrize(("raw", "millis"), RAW.values(), ids=RAW.keys())
def test_limits_know_what_was_allocatable_before(build: Any, raw: ResourceVector | None, millis: int | None) -> None:
    """Of CPU, where the Node's annotation says it."""
    facts = build.facts(colocation=NodeColocation(raw_allocatable=raw))
    assert facts.for_limits().raw_allocatable_millis == millis


BARRED: dict[str, tuple[dict[str, Any], int, int]] = {
    # of 4 CPUs and 8 GiB: CPU and memory that are reserved
    "nothing": ({}, 0, 0),
    "a CPU that kubepods' cpuset leaves out": ({"pods_cpus": 1}, 1000, 0),
    "a quota of kubepods": ({"pods_quota_millis": 2500}, 1500, 0),
    "the tighter of both": ({"pods_cpus": 1, "pods_quota_millis": 2500}, 1500, 0),
    "a quota beyond the node": ({"pods_quota_millis": 9000}, 0, 0),
    "a memory limit of kubepods": ({"kubepods_memory_limit_bytes": 6 << 30}, 0, 2 << 30),
    "a memory limit beyond the node": ({"kubepods_memory_limit_bytes": 9 << 30}, 0, 0),
}


@pytest.mark.parametrize(("seen", "cpu", "memory"), BARRED.values(), ids=BARRED)
def test_what_no_pod_may_have_is_reserved(build: Any, seen: dict[str, Any], cpu: int, memory: int) -> None:
    """No less than what is reserved in any case."""
    node = Node("n", ResourceVector({CPU: 4000, MEMORY: 8 << 30}), ResourceVector({CPU: 4000, MEMORY: 8 << 30}))
    barred = build.seen(10, node=node, **seen).barred
    for own in (0, 1 << 40):
        reserved = ResourceVector({CPU: own, MEMORY: own})
        found = build.facts(colocation=NodeColocation(reserved=reserved)).for_lending(None, 10.0, barred)
        kept = found.colocation.reserved
        assert (kept[CPU], kept[MEMORY]) == (max(cpu, own), max(memory, own))
