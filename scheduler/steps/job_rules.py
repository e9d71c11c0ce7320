"""Rules of queues for whole workloads, asked of those that wait: what the rules need to know is counted here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.queue import QueueAdmission, QueueState
from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.queue_book import QueueBook
from scheduler.core.queues.admission_rules import JobFacts, Refusal, Replicas, gpus_of, refusal
from scheduler.core.queues.tree import QueueTree


class JobRules:
    """Of one turn. Where a queue takes but so many jobs those that run count, then those that wait by their age."""

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
        return refusal(self._tree, queue, _facts(candidate), before)

    def never(self, candidate: Candidate) -> bool:
        """Whether a rule refuses it for ever: it takes nobody's place, holds up nobody and has no share."""
        against = refusal(self._tree, candidate.governed_by, _facts(candidate), {})
        return against is not None and against.terminal

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
        named = (each for each in self._waiting if each.governed_by in queues and each.subject not in running)
        own = (each for each in named if not self.never(each))
        line = sorted(own, key=lambda each: (each.workload.created_seconds, each.workload.uid))
        return {each.subject: place for place, each in enumerate(line)}


def ruleless(tree: QueueTree) -> frozenset[str]:
    """Queues that take any work: open leaves without a rule, below open queues without a rule."""

    def plain(name: str) -> bool:
        queue = tree.queues[name]
        return queue.state is QueueState.OPEN and queue.admission == QueueAdmission() and name not in tree.problems

    return frozenset(name for name in tree.top_down if tree.leaf(name) and all(map(plain, tree.path(name)[:-1])))


def _facts(candidate: Candidate) -> JobFacts:
    workload = candidate.workload
    shapes = [Replicas(pods.request.amounts, pods.count) for pods in workload.pod_sets]
    if workload.bound and shapes:
        shapes.append(Replicas(shapes[0].request, workload.bound))
    return JobFacts(workload.key.partition("/")[0], workload.priority, gpus_of(shapes))
