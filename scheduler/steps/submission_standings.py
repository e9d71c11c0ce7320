"""How LocalQueues stand: which work that waits or runs came in by each, and what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from model.flavor.resource_flavor import SubmissionQueue, SubmissionStanding
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.claim import ClaimKind
from scheduler.core.ledger.queue_book import add


def submission_standings(
    cache: ClusterCache,
    waiting: Iterable[Candidate],
    consumed: Callable[[SubmissionQueue], Mapping[str, int] | None] = lambda queue: None,
) -> tuple[SubmissionStanding, ...]:
    """By namespace and name; of work whose pods name one that is there. `consumed` is what it used over time."""
    known = cache.queues.kueue.submissions
    found = {key: SubmissionStanding(known[key]) for key in sorted(known)}
    running: dict[str, set[WorkloadId]] = {key: set() for key in found}
    pending, nominated = dict.fromkeys(found, 0), dict.fromkeys(found, 0)
    used: dict[str, dict[tuple[str, str], int]] = {key: {} for key in found}
    reserved: dict[str, dict[tuple[str, str], int]] = {key: {} for key in found}
    for charge in cache.ledger.charges() if found else ():
        key = charge.pod.submission_key if charge.pod is not None else ""
        if key in found and charge.counts:
            running[key].add(charge.job)
            add(used[key], charge.counted.cells())
    for admitted in cache.ledger.claims(ClaimKind.ADMITTED) if found else ():
        key = cache.suspended.submission_key(admitted.subject)
        if key in found:
            running[key].add(admitted.subject)
            for pod in admitted.pods:
                add(used[key], pod.pod_class.cells())
    for candidate in waiting if found else ():
        record = cache.pods.record(candidate.uids[0])
        key = record.pod.submission_key if record is not None else ""
        if key not in found or candidate.subject in running[key]:
            continue
        claim = cache.ledger.claim(ClaimKind.NOMINATED, candidate.subject)
        if claim is None:
            pending[key] += 1
            continue
        nominated[key] += 1
        for pod in claim.pods:
            add(reserved[key], pod.pod_class.cells())
    for key in found:
        add(reserved[key], used[key])
    return tuple(
        msgspec.structs.replace(
            standing,
            pending_jobs=pending[key],
            running_jobs=len(running[key]),
            nominated_jobs=nominated[key],
            used=used[key],
            reserved=reserved[key],
            consumed=consumed(standing.queue),
        )
        for key, standing in found.items()
    )
