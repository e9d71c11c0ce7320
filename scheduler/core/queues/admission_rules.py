"""Admission rules: whether a queue takes a workload, and what stands against it.

Every rule of every queue on the path to the root holds. A workload that a rule refuses for ever (too many GPUs, its
priority, its namespace) is told apart from one that waits (as many jobs as there may be, a queue that is closed or on
hold).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.queue import ROOT_QUEUE, Queue, QueueAdmission, QueueState
from model.reason import Reason
from scheduler.core.queues.tree import QueueTree

_GPU_ENDING = "/gpu"
_GPU_BEGINNINGS = ("nvidia.com/gpu.", "nvidia.com/mig-")


def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs: `<vendor>/gpu`, NVIDIA's shared ones (`nvidia.com/gpu.shared`) and its slices
    (`nvidia.com/mig-…`), each of which counts as one.
    """
    return resource.endswith(_GPU_ENDING) or resource.startswith(_GPU_BEGINNINGS)


class Replicas(msgspec.Struct, frozen=True):
    """Pods of one shape in a job; `most` 0 or below `least`: `least`."""

    request: Mapping[str, int]
    least: int = 1
    most: int = 0

    @property
    def count(self) -> int:
        """How many there may be at once."""
        return max(self.least, self.most)


class JobFacts(msgspec.Struct, frozen=True):
    """What the rules ask of a workload; `gpus` is as `gpus_of` has it."""

    namespace: str
    priority: int = 0
    gpus: int = 0


class Refusal(msgspec.Struct, frozen=True):
    """Why a workload is not tried: the queue whose rule it is, and a sentence with its numbers."""

    reason: Reason
    queue: str
    message: str

    @property
    def terminal(self) -> bool:
        """Whether no change of the cluster admits it: only that of the workload or of the rule."""
        return self.reason is Reason.QUEUE_REFUSES_JOB


def gpus_of(shapes: Iterable[Replicas]) -> int:
    """How many GPUs a job has when all its replicas run."""
    return sum(
        amount * shape.count for shape in shapes for resource, amount in shape.request.items() if is_gpu(resource)
    )


def refusal(tree: QueueTree, queue: str, job: JobFacts, jobs: Mapping[str, int]) -> Refusal | None:
    """Why the queue does not take the workload, None where it does.

    `jobs` is how many workloads count before this one, waiting or running, in and below each queue.
    """
    if queue not in tree.queues:
        return Refusal(Reason.QUEUE_NOT_FOUND, queue, f'queue "{queue}" does not exist')
    path = [tree.queues[name] for name in tree.path(queue) if name != ROOT_QUEUE]
    return (
        _unusable(tree, path)
        or next((found for each in path if (found := _in_state(each, QueueState.CLOSED))), None)
        or next((Refusal(Reason.QUEUE_INVALID, each.name, each.inactive) for each in path if each.inactive), None)
        or refused_for_ever(tree, queue, job)
        or next((found for each in path for state in _HELD if (found := _in_state(each, state))), None)
        or next((found for each in path if (found := _full(each, jobs.get(each.name, 0)))), None)
    )


def refused_for_ever(tree: QueueTree, queue: str, job: JobFacts) -> Refusal | None:
    """The rule of the queue, or of one above it, that only another job or another rule ends; None where there is none.

    Such a job neither holds up others of its queue nor takes a place of theirs.
    """
    path = (tree.queues[name] for name in tree.path(queue) if name in tree.queues)
    return next((found for each in path if (found := _refused(each, job))), None)


def counts_to(tree: QueueTree, queue: str, namespace: str) -> bool:
    """Whether a pod of the namespace that has a node counts to the queue that it names, whoever gave it the node.

    The rules of all queues on the path hold; of one that has others below it also theirs, since what counts there
    leaves them less. A queue that is not known has no rules.
    """
    inside = tree.path(queue) if tree.leaf(queue) else (*tree.path(queue), *_below(tree, queue))
    known = (tree.queues[name].admission.namespaces for name in inside if name in tree.queues)
    return all(not namespaces or namespace in namespaces for namespaces in known)


def _below(tree: QueueTree, queue: str) -> Iterable[str]:
    waiting = [queue]
    while waiting:
        children = tree.children.get(waiting.pop(), ())
        waiting.extend(children)
        yield from children


def _unusable(tree: QueueTree, path: list[Queue]) -> Refusal | None:
    for each in path:
        if each.name in tree.problems:
            return Refusal(Reason.QUEUE_INVALID, each.name, tree.problems[each.name])
    name = path[0].name
    if tree.leaf(name):
        return None
    below = ", ".join(tree.children[name])
    return Refusal(Reason.QUEUE_HAS_CHILDREN, name, f'queue "{name}" has queues below it ({below}); name one of these')


_STATES = {
    QueueState.CLOSED: (Reason.QUEUE_CLOSED, "is closed: it takes no work"),
    QueueState.HOLD: (Reason.QUEUE_HELD, "is on hold: what waits there is not placed"),
    QueueState.DRAIN: (Reason.QUEUE_HELD, "is drained: what waits there is not placed, and what runs is evicted"),
}
_HELD = (QueueState.HOLD, QueueState.DRAIN)


def _in_state(queue: Queue, state: QueueState) -> Refusal | None:
    if queue.state is not state:
        return None
    reason, words = _STATES[state]
    return Refusal(reason, queue.name, f'queue "{queue.name}" {words}')


def _refused(queue: Queue, job: JobFacts) -> Refusal | None:
    rules, name = queue.admission, f'queue "{queue.name}"'
    message = ""
    if rules.namespaces and job.namespace not in rules.namespaces and rules.namespace_selector is not None:
        message = f"{name} takes no work of namespace {job.namespace}: its labels do not match spec.namespaceSelector"
    elif rules.namespaces and job.namespace not in rules.namespaces:
        message = f"{name} is for namespaces {', '.join(rules.namespaces)}, and the job is in {job.namespace}"
    elif rules.max_gpus_per_job is not None and job.gpus > rules.max_gpus_per_job:
        message = f"{name} takes at most {rules.max_gpus_per_job} GPUs a job, and the job asks for {job.gpus}"
    elif not _in_range(rules, job.priority):
        message = f"{name} takes priorities {_range(rules)}, and the job's is {job.priority}"
    return Refusal(Reason.QUEUE_REFUSES_JOB, queue.name, message) if message else None


def _full(queue: Queue, jobs: int) -> Refusal | None:
    most = queue.admission.max_jobs
    if most is None or jobs < most:
        return None
    message = f'queue "{queue.name}" has {jobs} jobs that wait or run, and may have {most}'
    return Refusal(Reason.QUEUE_FULL, queue.name, message)


def _in_range(rules: QueueAdmission, priority: int) -> bool:
    least, most = rules.min_priority, rules.max_priority
    return (least is None or priority >= least) and (most is None or priority <= most)


def _range(rules: QueueAdmission) -> str:
    if rules.max_priority is None:
        return f"from {rules.min_priority}"
    return (
        f"up to {rules.max_priority}"
        if rules.min_priority is None
        else (f"from {rules.min_priority} to {rules.max_priority}")
    )
