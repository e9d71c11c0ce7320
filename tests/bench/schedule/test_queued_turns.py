"""The cluster that turns are measured on is the one that the steps are measured on, as the API server tells of it."""

from __future__ import annotations

import msgspec

from bench.schedule.effort import QUICK
from bench.schedule.queued_turns import coming, known_cluster, measure_turns
from bench.schedule.queues import leaves, three_levels
from kube.dialects.queues.membership import LABEL_OURS
from model.queue import Queue
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cycle import Cycle
from scheduler.settings import SchedulerSettings

SETTINGS = SchedulerSettings()


def test_queues_and_their_quota_are_what_they_were_made_of() -> None:
    """And the pods wait in them, gang by gang."""
    queues = three_levels(60)
    cache = ClusterCache(SETTINGS.served)
    cycle = Cycle(cache, SETTINGS)
    cycle.turn([*known_cluster(1, queues), *coming(60, 8, leaves(queues), LABEL_OURS)], 0.0)
    seen = {queue.name: msgspec.structs.replace(queue, source="") for queue in cache.queues.seen()}
    assert not cache.queues.problems and seen == {queue.name: _plain(queue) for queue in queues}
    assert {each.governed_by for each in cycle.backlog.candidates} <= set(leaves(queues))


def _plain(queue: Queue) -> Queue:
    return msgspec.structs.replace(queue, source="")


def test_all_pods_find_a_place_on_both_sides() -> None:
    """Or the measurement ends with an error."""
    found = list(measure_turns(msgspec.structs.replace(QUICK, queued_gangs=(1, 8))))
    assert [(each.members, each.queues, len(each.with_queues), len(each.without)) for each in found] == [
        (1, QUICK.queues, QUICK.rounds, QUICK.rounds),
        (8, QUICK.queues, QUICK.rounds, QUICK.rounds),
    ]
