"""Queues that go strictly one after the other: who holds up whom."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from queue_world import cpu, pod, queue, running, world
from scheduler_builders import raw_group

from kube import objects


def selecting(source: objects.Pod, labels: dict[str, str]) -> objects.Pod:
    return msgspec.structs.replace(source, spec=msgspec.structs.replace(source.spec, node_selector=labels))


@pytest.mark.parametrize(
    ("order", "placed"),
    [("StrictFIFO", set()), ("BestEffortFIFO", {"small"}), ("Backfill", {"small"})],
)
def test_what_a_first_that_does_not_fit_means_to_others(order: str, placed: set[str]) -> None:
    """In a strict queue they wait, also in the turns in which it rests; other queues go on."""
    found = world(queue("team", order=order), queue("other"))
    found.see(running("r", "", batch_cpu="3000"), pod("large", "team", batch_cpu="2000", created=1.0))
    found.see(pod("small", "team", batch_cpu="100", created=2.0), pod("o", "other", created=3.0))
    found.turn()
    found.turn(after=0.5)
    assert found.binder.assigned.keys() == placed | {"o"}
    if order == "StrictFIFO":
        assert "pod/default/large is before it" in found.told("small")[0]
        found.gone(pod("large", "team", batch_cpu="2000", created=1.0)).turn(after=11.0)
        assert "small" in found.binder.assigned


NEVER: dict[str, tuple[dict[str, Any], list[objects.Pod], str]] = {
    "more than its queue may have": (
        {"quota": {"hard": cpu(1000)}},
        [pod("never", "team", batch_cpu="2000", created=1.0)],
        'queue "team" can never have 2000',
    ),
    "a priority that its queue does not take": (
        {"admissionControl": {"priorityRange": {"max": 6000}}},
        [pod("never", "team", priority=6001, created=1.0)],
        'queue "team" takes priorities up to 6000',
    ),
    "more than the largest node has": (
        {},
        [pod("never", "team", batch_cpu="4001", created=1.0)],
        "what the cluster has",
    ),
    "a node that does not exist": (
        {},
        [selecting(pod("never", "team", created=1.0), {"zone": "lost"})],
        "0/1 nodes",
    ),
    "more members than all nodes hold": (
        {},
        [pod(f"never{i}", "team", group="train", batch_cpu="1500", created=1.0) for i in range(3)],
        "what the cluster has",
    ),
}


@pytest.mark.parametrize(("spec", "never", "told"), NEVER.values(), ids=NEVER)
def test_a_first_that_can_never_run_holds_up_nobody(spec: dict[str, Any], never: list[objects.Pod], told: str) -> None:
    """A strict queue goes on with the next, and the first is told its own reason."""
    found = world(queue("team", order="StrictFIFO", **spec), raw_group("train", 3))
    found.see(*never, pod("next", "team", created=2.0)).turn()
    assert found.binder.assigned == {"next": "n1"}
    assert told in found.told(never[0].metadata.name)[0]
