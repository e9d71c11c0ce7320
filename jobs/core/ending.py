"""Whether a job has ended by what its pods did (Volcano's rules, and the leader's word)."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.core.members import Roster
from jobs.core.transitions import Cause
from model.job.job import Job
from model.job.status import PodPhase, TaskCounts


def ending(job: Job, found: Roster, counts: Mapping[str, TaskCounts]) -> Cause | None:
    """COMPLETED while some pods run on, SUCCEEDED or PODS_FAILED once none does; None while it goes on."""
    succeeded = sum(each.succeeded for each in counts.values())
    done = bool(found.wanted) and all(pod.done for pod in found.current.values()) and not found.missing
    over = done and len(found.current) == len(found.wanted) and _all_due(job, found)
    if _led(job, found) or (job.success and succeeded >= job.success):
        return Cause.SUCCEEDED if over else Cause.COMPLETED
    if not over:
        return None
    return Cause.SUCCEEDED if _enough(job, counts, succeeded) else Cause.PODS_FAILED


def _led(job: Job, found: Roster) -> bool:
    """Whether its leader has succeeded."""
    leading = [pod for member, pod in found.current.items() if job.leader in (member.task, member.text)]
    return bool(leading) and all(pod.phase is PodPhase.SUCCEEDED for pod in leading)


def _all_due(job: Job, found: Roster) -> bool:
    """Tasks that wait for others have not begun while these have; a task without pods has nothing to begin."""
    begun = {member.task for member in found.wanted}
    return all(task.name in begun or not task.replicas for task in job.tasks)


def _enough(job: Job, counts: Mapping[str, TaskCounts], succeeded: int) -> bool:
    if job.success:
        return False
    if job.group.minimum >= sum(task.minimum for task in job.tasks) and any(
        counts[task.name].succeeded < task.minimum for task in job.tasks
    ):
        return False
    return succeeded >= job.group.minimum
