"""Workloads that have nodes: one batch of bindings, charged as assumed, and strict where a gang needs all of them."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import SCHEDULER, raw_group, raw_node, raw_pod

from kube import objects
from kube.informer import Change, ChangeKind
from model.placement import PlacementState
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.queueing.backlog import Backlog
from scheduler.core.queueing.backoff import BackoffPolicy
from scheduler.steps.binding import Binding

GANG = WorkloadId.gang("default/train")


class Scene:
    """A cache with these objects and node n1, its backlog, and what places."""

    def __init__(self, *found: Any, batch_cpu: str = "5000") -> None:
        self.cache, self.backlog = ClusterCache((SCHEDULER,)), Backlog(BackoffPolicy(), 1.0)
        for each in (raw_node(batch_cpu=batch_cpu), *found):
            kinds = {objects.Pod: facts.PodSeen, objects.Node: facts.NodeSeen, objects.PodGroup: facts.PodGroupSeen}
            self.cache.apply(kinds.get(type(each), facts.ObjectSeen)(Change(ChangeKind.ADDED, each)))
        self.binding = Binding(self.cache, self.backlog)
        self.snapshot = self.cache.snapshot()
        self.working = WorkingSnapshot(self.snapshot)

    def candidate(self, subject: WorkloadId) -> Candidate:
        assembly = self.cache.assembly(subject, self.cache.parts(subject))
        self.backlog.update(subject, assembly, 0.0)
        assert assembly.candidate is not None
        return assembly.candidate

    def bound(self, subject: WorkloadId) -> Any:
        """The turn that assumes and binds the workload."""
        candidate = self.candidate(subject)
        outcome = place(self.working, candidate)
        assert isinstance(outcome, Placed)
        placing = self.binding.prepared(candidate, outcome, self.working)
        assert self.cache.ledger.charge(outcome.assignments[0].uid) is None
        return self.binding.assume(self.working, candidate, placing, 7.0)


def train(number: int, **more: Any) -> list[objects.Pod]:
    return [raw_pod(f"t{i}", group="train", created=float(i), **more) for i in range(number)]


def test_the_queue_that_others_named_is_written_with_the_binding() -> None:
    """Of a pod of a gang, whose PodGroup may name another queue later; one that is on its own says it itself."""
    scene = Scene(raw_group("train", 2), *train(2), raw_pod("alone"))
    told = [each.placement.annotations for each in scene.bound(GANG).batches[0].binds]
    assert told == [(("sublet.dev/charged-queue", ""),)] * 2
    alone = WorkloadId.pod("default/alone")
    assert scene.bound(alone).batches[0].binds[0].placement.annotations == ()


def test_where_there_are_queues_it_is_written_on_every_pod() -> None:
    """Whoever writes a pod may give it an owner, or a gang's object another queue than its pods name."""
    queue, words = objects.Queue(objects.Metadata("team")), {"sublet.dev/queue": "team"}
    group = objects.VolcanoPodGroup(objects.Metadata("g", "default", "g"), {"queue": "other", "minMember": 1})
    member = {"scheduling.k8s.io/group-name": "g"}
    scene = Scene(
        queue, group, raw_pod("a"), raw_pod("b", labels=words), raw_pod("c", labels=words, annotations=member)
    )
    for subject in (WorkloadId.pod("default/a"), WorkloadId.pod("default/b"), WorkloadId.gang("default/g")):
        (bind,) = scene.bound(subject).batches[0].binds
        assert bind.placement.annotations == (("sublet.dev/charged-queue", ""),)


def test_a_lone_pod() -> None:
    """Bound by name and uid, not strict; charged as assumed, and left alone in the backlog."""
    scene, subject = Scene(raw_pod("p", created=3.0)), WorkloadId.pod("default/p")
    (batch,) = scene.bound(subject).batches
    (bind,) = batch.binds
    assert (batch.subject, batch.strict) == (subject, False)
    assert (bind.pod.key, bind.placement.pod_uid, bind.placement.node) == ("default/p", "uid-p", "n1")
    assert bind.created_seconds == 3.0
    charge = scene.cache.ledger.charge("uid-p")
    assert charge is not None and (charge.node, charge.state) == ("n1", PlacementState.ASSUMED)
    assert scene.backlog.ready(100.0) == []
    assert scene.snapshot.free[0, scene.snapshot.resources.index(BATCH_CPU)] == 5000
    assert scene.working.free[0, scene.snapshot.resources.index(BATCH_CPU)] == 4500


@pytest.mark.parametrize(
    ("group", "strict"),
    [
        (raw_group("train", 2), True),
        (raw_group("train", 2, annotations={"gang.scheduling.koordinator.sh/mode": "NonStrict"}), False),
    ],
)
def test_a_gang_is_one_batch(group: objects.PodGroup, strict: bool) -> None:
    """All members; strict by its mode."""
    scene = Scene(group, *train(3))
    (batch,) = scene.bound(GANG).batches
    assert sorted(bind.pod.name for bind in batch.binds) == ["t0", "t1", "t2"]
    assert (batch.subject, batch.strict) == (GANG, strict)


def test_a_member_more_is_not_strict() -> None:
    """The gang has what it needs already: a failure releases nobody."""
    running = [raw_pod(f"r{i}", group="train", node_name="n1", phase="Running") for i in range(2)]
    scene = Scene(raw_group("train", 2), *running, *train(1))
    (batch,) = scene.bound(GANG).batches
    assert (len(batch.binds), batch.strict) == (1, False)


def test_a_pod_that_is_gone() -> None:
    """Nothing is charged for the others."""
    scene = Scene(raw_group("train", 2), *train(2))
    candidate = scene.candidate(GANG)
    outcome = place(scene.working, candidate)
    assert isinstance(outcome, Placed)
    scene.cache.apply(facts.PodSeen(Change(ChangeKind.DELETED, train(2)[1])))
    with pytest.raises(LookupError, match="uid-t1 was placed but is not in the cache"):
        scene.binding.prepared(candidate, outcome, scene.working)
    assert scene.cache.ledger.charge("uid-t0") is None
