"""What no cluster and no queue may lead to, turn by turn: the cycle alone, its writes carried out by the test."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler_builders import raw_group, raw_node, raw_pod

from kube import objects
from kube.informer import Change, ChangeKind
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings
from scheduler.steps.turn import Turn


class Shape(msgspec.Struct, frozen=True):
    """A workload: a gang, or a lone pod where `minimum` is 0."""

    count: int
    minimum: int
    size: int
    priority: int
    policy: str | None


shapes = st.builds(
    Shape,
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from((200, 400, 700)),
    st.sampled_from((0, 100, 200)),
    st.sampled_from((None, None, "Never")),
)
clusters = st.lists(st.sampled_from((400, 800, 1400)), min_size=1, max_size=4)


class Cluster:
    """Everything a turn decides is done before the next one; evicted pods end, and are not replaced."""

    def __init__(self, capacities: list[int]) -> None:
        configured = SchedulerSettings()
        self.cycle = Cycle(ClusterCache(configured.served), configured)
        self.capacity = {f"n{i}": cpu for i, cpu in enumerate(capacities)}
        self.pods: dict[str, objects.Pod] = {}
        self.needs: dict[WorkloadId, int] = {}
        self.now = 1000.0
        self.inbox: list[facts.Fact] = []
        for name, cpu in self.capacity.items():
            self.tell(facts.NodeSeen, raw_node(name, batch_cpu=str(cpu)))

    def tell(self, fact: Any, item: Any, kind: ChangeKind = ChangeKind.MODIFIED) -> None:
        self.inbox.append(fact(Change(kind, item)))

    def add(self, number: int, shape: Shape) -> None:
        group = f"g{number}" if shape.minimum else ""
        if group:
            self.needs[WorkloadId.gang(f"default/{group}")] = shape.minimum
            self.tell(facts.PodGroupSeen, raw_group(group, shape.minimum))
        for index in range(shape.count):
            own = {"priority": shape.priority, "policy": shape.policy, "created": float(number)}
            self.put(raw_pod(f"g{number}-{index}", group=group, batch_cpu=str(shape.size), **own))  # type: ignore[arg-type]

    def put(self, pod: objects.Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self.tell(facts.PodSeen, pod)

    def turn(self) -> Turn:
        """One turn, checked and carried out."""
        self.now += 20.0
        inbox, self.inbox = self.inbox, []
        turn = self.cycle.turn(inbox, self.now)
        placed = dict.fromkeys(self.needs, 0)
        for batch in turn.batches:
            gang = batch.subject in placed
            before = self.bound(batch.subject) if gang else 0
            assert not gang or before + len(batch.binds) >= self.needs[batch.subject], "a part of a gang is bound"
            for bind in batch.binds:
                pod = self.pods[bind.pod.name]
                self.put(
                    msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=bind.placement.node))
                )
            self.inbox.append(facts.BatchDone(batch.subject))
        for node, cpu in self.capacity.items():
            assert self.used(node) <= cpu, "a node is over-committed"
        return turn

    def used(self, node: str) -> int:
        return sum(_size(pod) for pod in self.pods.values() if pod.spec.node_name == node)

    def bound(self, subject: WorkloadId) -> int:
        prefix = subject.name.removeprefix("default/") + "-"
        return sum(bool(pod.spec.node_name) for name, pod in self.pods.items() if name.startswith(prefix))

    def priority(self, subject: WorkloadId) -> int:
        prefix = subject.name.removeprefix("default/")
        return next(pod.spec.priority or 0 for name, pod in self.pods.items() if f"{name}-".startswith(f"{prefix}-"))

    def evict(self, turn: Turn) -> None:
        for name in sorted({eviction.pod.name for eviction in turn.evictions}):
            self.tell(facts.PodSeen, self.pods.pop(name), ChangeKind.DELETED)


def _size(pod: objects.Pod) -> int:
    resources = pod.spec.containers[0].resources
    return int(next(iter((resources.requests or {}).values()))) if resources else 0


def told(turn: Turn) -> object:
    """All that a turn decides."""
    return (turn.decisions, turn.batches, turn.pod_conditions, turn.evictions, turn.gang_statuses, turn.insights)


def story(capacities: list[int], first: list[Shape], then: list[Shape], *, backwards: bool = False) -> list[object]:
    """`first` comes and settles, `then` comes at once; each plan is checked when its victims are gone."""
    cluster, out = Cluster(capacities), list[object]()
    for wave in (list(enumerate(first)), list(enumerate(then, len(first)))):
        for number, shape in wave:
            cluster.add(number, shape)
        if backwards:
            cluster.inbox.reverse()
        for _ in range(6):
            turn = cluster.turn()
            out.append(told(turn))
            check_victims(cluster, turn)
            promised = preemptors(cluster, turn)
            cluster.evict(turn)
            if promised:
                out.append(told(after := cluster.turn()))
                check_placed(cluster, promised, after)
                cluster.evict(after)
    return out


def preemptors(cluster: Cluster, turn: Turn) -> dict[WorkloadId, int]:
    """Those for whom somebody goes, with their priorities."""
    found = [subject for subject, insight in turn.insights.items() if insight.value]
    return {subject: cluster.priority(subject) for subject in found}


def check_placed(cluster: Cluster, promised: dict[WorkloadId, int], turn: Turn) -> None:
    """Whoever had room made gets it, but for one of higher priority that waits too and may not preempt itself."""
    takers = [cluster.pods[bind.pod.name].spec.priority or 0 for batch in turn.batches for bind in batch.binds]
    for subject in promised.keys() - {batch.subject for batch in turn.batches}:
        assert max(takers, default=0) > promised[subject], f"somebody went in vain for {subject}"


def check_victims(cluster: Cluster, turn: Turn) -> None:
    """A victim is of lower priority than who is named in the message, and that one may preempt."""
    for eviction in turn.evictions:
        trigger = cluster.pods[eviction.message.rpartition("default/")[2]]
        victim = cluster.pods[eviction.pod.name]
        assert (victim.spec.priority or 0) < (trigger.spec.priority or 0), eviction.message
        assert trigger.spec.preemption_policy != "Never", eviction.message


def lists(most: int) -> st.SearchStrategy[list[Shape]]:
    return st.lists(shapes, min_size=1, max_size=most)


@settings(max_examples=50)
@given(clusters, lists(5), lists(4))
def test_nobody_goes_in_vain_and_no_gang_is_bound_in_part(
    capacities: list[int], first: list[Shape], then: list[Shape]
) -> None:
    """And no node is over-committed; the same input twice gives the same output, in whatever order facts came."""
    found = story(capacities, first, then)
    assert story(capacities, first, then) == found
    assert story(capacities, first, then, backwards=True) == found
