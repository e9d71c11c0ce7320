"""What holds of every plan, on clusters too large to try every subset."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lengths import at_length
from preemption_builders import Arena, node, resident, victims, waiting
from scheduler_builders import candidate, gang, in_group

from model.pod.pod import Pod
from model.workload import TopologyLevel, WorkloadId
from scheduler.core.placement.place import Placed, place
from scheduler.core.preemption.facts import GangFacts, NoPreemption, PreemptionPlan

_NODES = [node(f"n{i}", cpu=8, labels={"rack": f"r{i % 3}"}) for i in range(6)]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Pod], dict[str, GangFacts]]:
    """Nodes filled with lone pods and gangs of priorities 0 to 3, each gang of one priority."""
    pods: list[Pod] = []
    sizes: dict[str, int] = {}
    for number in range(6):
        left = 8
        while left > 0:
            cpu = min(left, draw(st.integers(1, 4)))
            left -= cpu
            group = draw(st.sampled_from(["", "", "g1", "g2", "g3"]))
            sizes[group] = sizes.get(group, 0) + 1
            priority = int(group[1]) if group else draw(st.integers(0, 3))
            name = f"p{number}-{left}"
            pods.append(resident(name, f"n{number}", cpu, priority=priority, group=group))
    facts = {
        WorkloadId.gang(f"default/{group}"): GangFacts(draw(st.integers(max(1, size - 2), size)), size)
        for group, size in sizes.items()
        if group
    }
    return pods, facts


@st.composite
def preemptors(draw: st.DrawFn) -> list[Pod]:
    """A gang of up to six members in one or two sizes."""
    priority = draw(st.integers(1, 4))
    small = [
        waiting(f"w{i}", draw(st.just(2)), priority=priority, gang=in_group()) for i in range(draw(st.integers(0, 3)))
    ]
    cpu = draw(st.integers(1, 6))
    large = [waiting(f"x{i}", cpu, priority=priority, gang=in_group()) for i in range(draw(st.integers(1, 4)))]
    return [*small, *large]


def fits(pods: Sequence[Pod], asking: list[Pod], racks: bool) -> bool:
    return isinstance(place(Arena(_NODES, pods).working(), candidate(asking, group_of(asking, racks))), Placed)


def group_of(asking: list[Pod], racks: bool):  # type: ignore[no-untyped-def]
    return gang(len(asking), topology=(TopologyLevel("rack", required=True),) if racks else ())


@settings(max_examples=10, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(crowds(), preemptors(), st.booleans())
def test_plans(cluster: tuple[list[Pod], dict[str, GangFacts]], asking: list[Pod], racks: bool) -> None:
    """Only lower priority goes; everybody fits afterwards; no pod is evicted needlessly; no gang falls under its minimum."""
    pods, facts = cluster
    if fits(pods, asking, racks):
        return
    outcome = Arena(_NODES, pods).ask(asking, group_of(asking, racks), gangs=facts)
    turned = Arena(_NODES[::-1], pods[::-1]).ask(asking, group_of(asking, racks), gangs=facts)
    assert turned == outcome
    lower = [pod for pod in pods if pod.spec.priority < asking[0].spec.priority]
    if isinstance(outcome, NoPreemption):
        if len({pod.spec.requests.amounts["cpu"] for pod in asking}) == 1 and all(
            pod.spec.gang is None for pod in lower
        ):
            assert not fits([pod for pod in pods if pod not in lower], asking, racks)
        return
    assert isinstance(outcome, PreemptionPlan)
    gone = set(victims(outcome))
    assert gone and gone <= {pod.name for pod in lower}
    stay = [pod for pod in pods if pod.name not in gone]
    assert fits(stay, asking, racks)
    for name in sorted(gone):
        back = next(pod for pod in pods if pod.name == name)
        own = facts.get(WorkloadId.gang(back.spec.gang.key)) if back.spec.gang else None
        lost = sum(1 for pod in pods if pod.name in gone and pod.spec.gang == back.spec.gang)
        if own is None or lost <= own.surplus:
            assert not fits([*stay, back], asking, racks)
        else:
            assert lost == own.bound


test_many_plans = at_length(test_plans, crowds(), preemptors(), st.booleans(), examples=300)
