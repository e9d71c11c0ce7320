"""Checks of Kueue's queues and of what these count by: what Kueue's own webhooks refuse, and what nobody acts on.

What other objects would have to say (a flavour, a cohort, a ClusterQueue that does not exist) is told in the status.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from admission.check_result import CheckContext, CheckResult
from kube.dialects.queues import kueue, kueue_objects
from kube.dialects.queues.reading import read
from kube.dialects.queues.use import use_of
from kube.objects import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Topology, WorkloadPriorityClass
from model.fault import ConfigurationFault


def check_kueue_queue(source: ClusterQueue | Cohort, surroundings: CheckContext) -> CheckResult:
    """A ClusterQueue or a Cohort that cannot be read is refused."""
    found = read(source)
    if found.problem:
        return CheckResult((found.problem,))
    unmet = kueue.unmet(source) if isinstance(source, ClusterQueue) else ()
    return CheckResult((), tuple(f"{found.where}: nothing acts on {each}" for each in unmet))


def check_deleted_cluster_queue(source: ClusterQueue, surroundings: CheckContext) -> CheckResult:
    """One that jobs are in stays."""
    use = use_of(source)
    if not use.jobs:
        return CheckResult()
    told = f"{use.running} running and {use.waiting} waiting jobs are in it; delete them first, or wait for their end"
    return CheckResult((f"{kueue.where_of(source)}: {told}",))


def check_local_queue(source: LocalQueue, surroundings: CheckContext) -> CheckResult:
    """One that names no ClusterQueue is refused."""
    return _readable(kueue_objects.submission_queue, source)


def check_flavor(source: ResourceFlavor, surroundings: CheckContext) -> CheckResult:
    """One that cannot be read is refused."""
    return _readable(kueue_objects.flavor, source)


def check_workload_priority(source: WorkloadPriorityClass, surroundings: CheckContext) -> CheckResult:
    """One without a value is refused."""
    return _readable(kueue_objects.priority, source)


def check_topology(source: Topology, surroundings: CheckContext) -> CheckResult:
    """One without levels is refused."""
    return _readable(kueue_objects.levels, source)


def _readable(reader: Callable[[Any], object], source: Any) -> CheckResult:
    try:
        reader(source)
    except ConfigurationFault as fault:
        return CheckResult((str(fault),))
    return CheckResult()
