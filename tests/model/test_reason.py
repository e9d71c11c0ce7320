"""Every reason has words of its own."""

from __future__ import annotations

import pytest

from model.reason import Reason, Stage, stage_of, words


def test_every_reason_has_words() -> None:
    """One short line, and no code in it."""
    told = {reason: words(reason) for reason in Reason}
    assert [reason for reason, line in told.items() if not line.strip() or "\n" in line] == []
    assert [reason for reason, line in told.items() if reason.value in line and " " not in line] == []


def test_codes_are_one_word() -> None:
    """They are labels of metrics and reasons of Events."""
    assert [reason.value for reason in Reason if not reason.value.isalnum() or not reason.value[0].isupper()] == []


@pytest.mark.parametrize(
    ("reason", "stage"),
    [
        (Reason.QUEUE_NOT_FOUND, Stage.ADMISSION),
        (Reason.QUEUE_REFUSES_JOB, Stage.ADMISSION),
        (Reason.GANG_WAITING_FOR_MEMBERS, Stage.ADMISSION),
        (Reason.QUOTA_TOO_SMALL, Stage.QUOTA),
        (Reason.QUOTA_EXHAUSTED, Stage.QUOTA),
        (Reason.RECLAIMING, Stage.QUOTA),
        (Reason.QUEUE_ORDER, Stage.ORDER),
        (Reason.UNSCHEDULABLE, Stage.PLACEMENT),
        (Reason.GANG_DOES_NOT_FIT, Stage.PLACEMENT),
        (Reason.SCHEDULED, Stage.PLACED),
    ],
)
def test_the_stage_of_a_reason(reason: Reason, stage: Stage) -> None:
    assert stage_of(reason) is stage


def test_queues_refuse_before_placement() -> None:
    """No reason of a queue or a quota counts as one of nodes."""
    own = [reason for reason in Reason if reason.value.startswith(("Queue", "Quota"))]
    told = {
        reason: stage_of(reason)
        for reason in own
        if not reason.value.startswith(("QuotaRaised", "QuotaLowered", "QuotaBurst"))
    }
    assert Stage.PLACEMENT not in told.values()
