"""Which members count."""

from __future__ import annotations

import pytest
from scheduler_builders import SCHEDULER, in_group, pod

from model.pod.pod import Pod
from model.pod.status import PodPhase
from scheduler.core.gangs.roster import roster

CASES: dict[str, tuple[Pod, str]] = {
    "waits": (pod(), "pending"),
    "bound": (pod(node_name="n1"), "placed"),
    "a binding is on its way": (pod(uid="assumed"), "placed"),
    "bound by another scheduler": (pod(node_name="n1", scheduler_name="other"), "placed"),
    "waits for another scheduler": (pod(scheduler_name="other"), "foreign"),
    "has a gate": (pod(gated=True), "gated"),
    "asks for what is not known": (pod(unsupported=("spec.x",)), "unsupported"),
    "goes": (pod(node_name="n1", deleting=True), "deleting"),
    "is through, though it goes": (pod(phase=PodPhase.SUCCEEDED, deleting=True), "succeeded"),
    "failed": (pod(node_name="n1", phase=PodPhase.FAILED), "failed"),
}


@pytest.mark.parametrize("name", CASES)
def test_each_pod_is_in_one_column(name: str) -> None:
    """What a pod's own state makes of it."""
    found, column = CASES[name]
    result = roster([found], {"assumed"}, {SCHEDULER})
    assert getattr(result, column) == (found,)
    columns = (getattr(result, field) for field in result.__struct_fields__)
    assert sum(map(len, columns)) == 1


def test_what_is_told_of_several() -> None:
    """Completed members count as satisfied; bound excludes assumed ones; rejected are failed ones with a reason."""
    done = pod("d", phase=PodPhase.SUCCEEDED, created_seconds=9.0)
    bound = pod("b", node_name="n1", created_seconds=5.0)
    assumed, waits = pod("a", created_seconds=7.0), pod("w", created_seconds=1.0, gang=in_group())
    refused = pod("r", phase=PodPhase.FAILED, rejected="OutOfcpu")
    failed = pod("f", phase=PodPhase.FAILED)
    found = roster([done, bound, assumed, waits, refused, failed], {assumed.uid}, {SCHEDULER})
    assert (found.satisfied, found.present) == (3, 4)
    assert found.counted == (waits, bound, assumed, done)
    assert (found.bound, found.rejected) == ((bound,), (refused,))
