"""What would run with more nodes: the decision on the larger cluster, beside that on the one that is given."""

from __future__ import annotations

import msgspec

from cli.simulate.cluster_more import MoreNodes, with_more
from cli.simulate.cluster_run import Extent, decide
from cli.simulate.manifests import Manifests
from scheduler.settings import SchedulerSettings
from view.cluster_outcome import Outcome
from view.simulated_queues import WhatIfOut


def decide_with(
    found: Manifests, now: float, settings: SchedulerSettings, extent: Extent, more: MoreNodes | None = None
) -> Outcome:
    """As `decide` of cluster_run, on the larger cluster where more nodes are asked for. Raises ConfigurationFault."""
    if more is None:
        return decide(found, now, settings, extent)
    larger, like = with_more(found, more)
    before, after = decide(found, now, settings, extent), decide(larger, now, settings, extent)
    news = sorted(_running(after) - _running(before))
    return msgspec.structs.replace(after, what_if=WhatIfOut(more.count, like, tuple(news)))


def _running(outcome: Outcome) -> set[str]:
    return {job.name for job in outcome.jobs if job.state == "Running"}
