"""The annotation that tells a pod that it goes: what is written is read, and nothing else."""

from __future__ import annotations

import json

import pytest

from kube.dialects.sublet.preemption_notice import (
    ANNOTATION_STANDING_NOTICE,
    MOST_BYTES,
    notice_text,
    standing_notice,
    withdrawal,
)
from model.pod.colocation import StandingNotice

NOTICE = StandingNotice(1_700_000_000.25, 1_700_000_060.5, "PreemptionByScheduler", "gang/ml/big")


def test_what_is_written_is_read() -> None:
    text = notice_text(NOTICE)
    assert json.loads(text) == {
        "deadline": "2023-11-14T22:14:20.500000Z",
        "since": "2023-11-14T22:13:20.250000Z",
        "reason": "PreemptionByScheduler",
        "by": "gang/ml/big",
    }
    assert standing_notice({ANNOTATION_STANDING_NOTICE: text}) == NOTICE and "\n" not in text


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "soon",
        "[]",
        "{}",
        '{"deadline": 5, "since": 5}',
        '{"deadline": "2023-11-14T22:14:20Z"}',
        '{"deadline": "2023-11-14T22:14:20", "since": "2023-11-14T22:14:20"}',
        "[" * 1500,
        notice_text(StandingNotice(1.0, 2.0, "x" * MOST_BYTES)),
    ],
)
def test_what_is_no_notice(text: str | None) -> None:
    assert standing_notice({} if text is None else {ANNOTATION_STANDING_NOTICE: text}) is None


def test_a_withdrawal_is_of_this_pod_and_of_this_notice_alone() -> None:
    uid, same, gone = withdrawal(NOTICE, "u")
    assert (uid["op"], uid["path"], uid["value"]) == ("test", "/metadata/uid", "u")
    assert (same["op"], same["path"], same["value"]) == (
        "test",
        "/metadata/annotations/sublet.dev~1preemption-notice",
        notice_text(NOTICE),
    )
    assert (gone["op"], gone["path"]) == ("remove", same["path"])
