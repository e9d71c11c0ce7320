"""What each best-effort pod's eviction costs its job."""

from __future__ import annotations

from scheduler_builders import in_group, pod

from model.pod.status import PodPhase
from model.qos import QoSClass
from model.report import EvictionCost
from scheduler.core.preemption.eviction_cost import eviction_costs

NOW = 1000.0


def test_costs() -> None:
    """Gang, members above its minimum, none for one of that minimum, and the age of the newest checkpoint; in order of uid."""
    pods = [
        pod("c", uid="3", qos_label=QoSClass.BE),
        pod("b", uid="2", namespace="default", qos_label=QoSClass.BE, gang=in_group("other")),
        pod("a", uid="1", namespace="default", qos_label=QoSClass.BE, gang=in_group("train")),
        pod("d", uid="4", namespace="default", qos_label=QoSClass.BE, gang=in_group("train"), minimum_member=True),
    ]
    assert eviction_costs(pods, {"default/train": 2}, {"1": 940.0, "3": 1100.0, "9": 0.0}, NOW) == (
        EvictionCost(pod_uid="1", gang="default/train", members_above_minimum=2, checkpoint_age_seconds=60.0),
        EvictionCost(pod_uid="2", gang="default/other", members_above_minimum=0, checkpoint_age_seconds=None),
        EvictionCost(pod_uid="3", gang="", members_above_minimum=0, checkpoint_age_seconds=0.0),
        EvictionCost(pod_uid="4", gang="default/train", members_above_minimum=0, checkpoint_age_seconds=None),
    )


def test_who_has_no_cost() -> None:
    """Online pods, those that are through, and those that leave already."""
    pods = [
        pod("online", uid="1", qos_label=QoSClass.LS),
        pod("done", uid="2", qos_label=QoSClass.BE, phase=PodPhase.SUCCEEDED),
        pod("going", uid="3", qos_label=QoSClass.BE, deleting=True),
    ]
    assert eviction_costs(pods, {}, {}, NOW) == ()
