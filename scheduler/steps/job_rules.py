"""Rules of queues for whole workloads, asked of those that wait: what the rules need to know is counted here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.queue import ROOT_QUEUE, QueueAdmission, QueueState
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.queue_book import QueueBook
from scheduler.core.queues.admission_rules import JobFacts, Refusal, Replicas, gpus_of, refusal, refused_for_ever
from scheduler.core.queues.tree import QueueTree

MOST_RESOURCES = 128
"""Of which queues count what a pod asks for."""
_NO_RULES = QueueAdmission()


class JobRules:
    """Of one turn. Where a queue takes but so many jobs those that run count, then those that wait by their age, but
    for those that it never takes.
    """

    def __init__(self, tree: QueueTree, book: QueueBook, waiting: Iterable[Candidate]) -> None:
        self._tree = tree
        self._book = book
        self._waiting = waiting
        self._places: dict[str, Mapping[WorkloadId, int]] = {}

    def refused(self, candidate: Candidate) -> Refusal | None:
        """What rule of its queue, or of one above it, is against it."""
        queue = candidate.governed_by
        path = self._tree.path(queue)
        limited = [
            name
            for name in path
            if name in self._tree.queues and self._tree.queues[name].admission.max_jobs is not None
        ]
        before = {name: self._before(name, candidate.subject) for name in limited}
        return refusal(self._tree, queue, _facts(self._tree, candidate), before)

    def _before(self, node: str, subject: WorkloadId) -> int:
        """How many jobs in and below a queue count before this one; none where it runs already."""
        leaves = [name for name in self._tree.top_down if node in self._tree.path(name)]
        if any(subject in self._book.jobs(name) for name in leaves):
            return 0
        if node not in self._places:
            self._places[node] = self._line(frozenset(leaves))
        return sum(self._book.running(name) for name in leaves) + self._places[node].get(subject, 0)

    def _line(self, queues: frozenset[str]) -> dict[WorkloadId, int]:
        """The places of jobs that wait and have nothing running, the oldest 0."""
        running = {job for name in queues for job in self._book.jobs(name)}
        own = [each for each in self._waiting if each.governed_by in queues and each.subject not in running]
        line = sorted(admissible(self._tree, own), key=lambda each: (each.workload.created_seconds, each.workload.uid))
        return {each.subject: place for place, each in enumerate(line)}


def ruleless(tree: QueueTree) -> frozenset[str]:
    """Queues that take any work: open leaves without a rule, below open queues without a rule."""

    def plain(name: str) -> bool:
        queue = tree.queues[name]
        return queue.state is QueueState.OPEN and queue.admission == QueueAdmission() and name not in tree.problems

    return frozenset(name for name in tree.top_down if tree.leaf(name) and all(map(plain, tree.path(name)[:-1])))


def admissible(tree: QueueTree, candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that no rule of their queue refuses for ever."""
    return [each for each in candidates if not never_taken(tree, each)]


def never_taken(tree: QueueTree, candidate: Candidate) -> bool:
    """Whether a rule of its queue, or of one above it, refuses it for ever, or its pods name too many resources."""
    queue = candidate.governed_by
    if queue != ROOT_QUEUE and too_many_resources(candidate):
        return True
    if not any(_has_rules(tree, name) for name in tree.path(queue)):
        return False
    return refused_for_ever(tree, queue, _facts(tree, candidate)) is not None


def too_many_resources(candidate: Candidate) -> str:
    """What a job is told whose pods name more resources than queues count; empty where they do not.

    Whoever makes a pod may name tens of thousands, and each question about quota goes through all of them.
    """
    for pod_class in candidate.classes:
        if len(pod_class.request) > MOST_RESOURCES:
            return f"a pod of it names {len(pod_class.request)} resources, and queues count up to {MOST_RESOURCES}"
    return ""


def _has_rules(tree: QueueTree, name: str) -> bool:
    return name in tree.queues and tree.queues[name].admission != _NO_RULES


def _facts(tree: QueueTree, candidate: Candidate) -> JobFacts:
    """GPUs are counted where they are limited: their author chooses how many resources pods name."""
    path, workload = tree.path(candidate.governed_by), candidate.workload
    namespace = workload.key.partition("/")[0]
    limits = (tree.queues[name].admission.max_gpus_per_job for name in path if name in tree.queues)
    if all(limit is None for limit in limits):
        return JobFacts(namespace, workload.priority)
    shapes = [Replicas(pods.request.amounts, pods.count) for pods in workload.pod_sets]
    if workload.bound and shapes:
        shapes.append(Replicas(shapes[0].request, workload.bound))
    return JobFacts(namespace, workload.priority, gpus_of(shapes))
