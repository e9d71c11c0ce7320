"""Plans: who goes, and who is left to end first."""

from __future__ import annotations

from model.placement import EvictionPlan, Victim
from model.workload import WorkloadId


def test_who_goes_with_a_plan() -> None:
    quick = Victim("ml/a", "a", "n1", WorkloadId.pod("ml/a"), left_until_seconds=9.0)
    other = Victim("ml/b", "b", "n1", WorkloadId.pod("ml/b"))
    assert EvictionPlan(WorkloadId.pod("ml/x"), "ml/x", (quick, other), ()).going == (other,)
