"""Gang timeouts."""

from __future__ import annotations

from scheduler_builders import candidate, gang, in_group, members, pod

from model.reason import Reason
from model.workload import WorkloadId
from scheduler.core.queueing.gang_timeouts import GangTimeouts

GANG = WorkloadId.gang("default/train")


def test_the_first_attempt_starts_the_clock() -> None:
    """Further attempts do not set it back; it expires once and starts again with the next attempt."""
    trials, tried = GangTimeouts(), candidate(members(3), gang(3, timeout_seconds=300.0))
    trials.failed(tried, 100.0)
    trials.failed(tried, 350.0)
    assert (trials.next_due(), trials.take_expired(399.0)) == (400.0, [])
    (told,) = trials.take_expired(400.0)
    assert (told.subject, told.reason, told.uids) == (GANG, Reason.GANG_TIMEOUT, tried.uids)
    assert told.detail == (
        "gang default/train: SchedulingTimeout: not placed within 300s of its first attempt; "
        "room kept for it is given up, it is tried again after its back-off"
    )
    assert (trials.take_expired(9999.0), trials.next_due()) == ([], None)
    trials.failed(tried, 1000.0)
    assert trials.next_due() == 1300.0


def test_a_short_time_is_a_minute_from_the_second_on() -> None:
    """Each end is told to all its pods, and so is what they lack afterwards: thousands are not written each second."""
    trials, tried = GangTimeouts(), candidate(members(3), gang(3, timeout_seconds=1.0))
    trials.failed(tried, 100.0)
    assert len(trials.take_expired(101.0)) == 1
    trials.failed(tried, 110.0)
    assert trials.next_due() == 170.0
    trials.forget(GANG)
    trials.failed(tried, 200.0)
    assert trials.next_due() == 201.0


def test_no_upper_bound() -> None:
    """Koordinator issue 1919: there a timeout beyond some 1,500 s has no effect."""
    trials = GangTimeouts()
    trials.failed(candidate(members(3), gang(3, timeout_seconds=1e7)), 0.0)
    assert trials.take_expired(9_999_999.0) == []
    assert len(trials.take_expired(1e7)) == 1


def test_who_has_no_timeout() -> None:
    """Lone pods, and members above a minimum that is met; a gang that is placed or gone."""
    trials = GangTimeouts()
    trials.failed(candidate([pod()]), 0.0)
    trials.failed(candidate([*members(1), pod("old", gang=in_group(), node_name="n1")], gang(1)), 0.0)
    assert trials.next_due() is None
    trials.failed(candidate(members(3), gang(3)), 0.0)
    trials.forget(GANG)
    assert trials.next_due() is None
