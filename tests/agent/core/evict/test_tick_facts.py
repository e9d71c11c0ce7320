"""What a pod's end frees, and when."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.evict.eviction_request import RUNNING_BATCH_CPU, USED_CPU, USED_MEMORY
from agent.core.evict.tick_facts import ending_seconds, unit_of
from model.decision import Unit
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from tests.agent.core.evict.evicting import GIB, batch, known

UNITS = dict.fromkeys((USED_CPU, RUNNING_BATCH_CPU, CPU, BATCH_CPU), Unit.MILLI_CPU)


@pytest.mark.parametrize("resource", [*UNITS, USED_MEMORY, MEMORY, BATCH_MEMORY])
def test_units(resource: str) -> None:
    """CPU in milli-CPU whatever its name, the rest in bytes."""
    assert unit_of(resource) is UNITS.get(resource, Unit.BYTES)


def test_what_a_pod_holds() -> None:
    """Use as measured, requests as written; nothing once it has ended, nothing that is not known."""
    asked: dict[str, Any] = {
        "requests": ResourceVector({BATCH_CPU: 500}),
        "containers": (Container("main", ResourceVector({BATCH_CPU: 400})),),
    }
    pod = batch("a", 1024, 250, **asked)
    facts = known(pod)
    resources = (USED_MEMORY, USED_CPU, RUNNING_BATCH_CPU, BATCH_CPU, BATCH_MEMORY)
    held = {name: facts.freed_by(pod.pod, name) for name in resources}
    assert held == {USED_MEMORY: GIB, USED_CPU: 250, RUNNING_BATCH_CPU: 400, BATCH_CPU: 500, BATCH_MEMORY: 0}
    done = batch("a", 1024, phase=PodPhase.SUCCEEDED, **asked)
    assert [known(done).freed_by(done.pod, name) for name in held] == [0, 0, 0, 0, 0]
    unread = batch("a", None)
    assert [known(unread).freed_by(unread.pod, name) for name in (USED_MEMORY, USED_CPU)] == [0, 0]


@pytest.mark.parametrize(("pinned", "frees"), [(0, 300), (200, 500), (9000, 1000)])
def test_kernel_caches_that_cannot_be_dropped_are_the_pod_s(pinned: int, frees: int) -> None:
    """As many as the node has of such, and no more than it has itself."""
    pod = batch("a", 300)
    facts = known(pod)
    sample = replace(facts.observation.pods["a"], memory_bytes=300, kernel_caches_bytes=700)
    node = replace(facts.observation.node_sample, pinned_bytes=pinned)
    seen = replace(facts.observation, pods={"a": sample}, node_sample=node)
    assert replace(facts, observation=seen).freed_by(pod.pod, USED_MEMORY) == frees


def test_how_long_an_end_takes() -> None:
    """Grace, a second, 0.11 s for each GB."""
    assert ending_seconds(30.0, 0) == 31.0
    assert ending_seconds(0.0, 3 * 10**9) == pytest.approx(1.33)
