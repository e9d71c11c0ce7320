"""The cluster that turns are measured on is the one that the steps are measured on, as the API server tells of it."""

from __future__ import annotations

import msgspec

from bench.figures import ClaimVerdict
from bench.machine import Machine
from bench.schedule.benchmark import Schedule
from bench.schedule.effort import QUICK
from bench.schedule.queued_turns import coming, known_cluster, measure_turns
from bench.schedule.queues import STEPS, TURNS, QueuedSpeed, leaves, three_levels
from bench.schedule.report import targets
from kube.dialects.queues.membership import LABEL_OURS
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
    seen = [(queue.name, queue.parent, queue.weight, queue.cells) for queue in cache.queues.seen()]
    assert sorted(seen) == sorted((queue.name, queue.parent, queue.weight, queue.cells) for queue in queues)
    assert {each.governed_by for each in cycle.backlog.candidates} <= set(leaves(queues))


def test_the_same_is_wanted_of_turns_and_of_steps() -> None:
    """Each by a line of its own."""
    fast, slow = (80.0, 81.0), (100.0, 100.0)
    speeds = tuple(QueuedSpeed(what, 9, 1, 9, 9, fast, slow) for what in (TURNS, STEPS))
    machine = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {})
    found = [each for each in targets(Schedule(machine, QUICK, queues=speeds)) if "queues" in each.name]
    assert [(each.name.partition(",")[0], each.verdict) for each in found] == [
        (TURNS, ClaimVerdict.MET),
        (STEPS, ClaimVerdict.MET),
    ]


def test_all_pods_find_a_place_on_both_sides() -> None:
    """Or the measurement ends with an error."""
    found = list(measure_turns(msgspec.structs.replace(QUICK, queued_gangs=(1, 8))))
    assert [(each.members, each.queues, len(each.with_queues), len(each.without)) for each in found] == [
        (1, QUICK.queues, QUICK.rounds, QUICK.rounds),
        (8, QUICK.queues, QUICK.rounds, QUICK.rounds),
    ]
