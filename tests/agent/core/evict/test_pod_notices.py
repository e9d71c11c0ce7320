"""Notices that stand: each is withdrawn by whom it came from, and the earliest deadline is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent.core.evict.eviction_request import PendingVictim
from agent.core.evict.pod_notices import NoticeOrigin, PodNotices, PodWord
from model.report import PreemptionNotice

AGENT, SCHEDULER = NoticeOrigin.AGENT, NoticeOrigin.SCHEDULER
SOON, LATE = PreemptionNotice("u", 100.0, "soon"), PreemptionNotice("u", 200.0, "late")
Changes = Callable[[PodNotices], object]

CASES: dict[str, tuple[tuple[Changes, ...], PodWord | None]] = {
    "nothing": ((), None),
    "one": ((lambda n: n.put(SCHEDULER, LATE),), PodWord(LATE)),
    "the earliest of two": ((lambda n: n.put(SCHEDULER, LATE), lambda n: n.put(AGENT, SOON)), PodWord(SOON)),
    "a later deadline of the same origin": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.put(SCHEDULER, LATE)),
        PodWord(LATE),
    ),
    "withdrawn": ((lambda n: n.put(SCHEDULER, SOON), lambda n: n.withdraw(SCHEDULER, "u")), PodWord(None)),
    "withdrawn by the other, who gave none": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.withdraw(AGENT, "u")),
        PodWord(SOON),
    ),
    "withdrawn by one of two": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.put(AGENT, LATE), lambda n: n.withdraw(SCHEDULER, "u")),
        PodWord(LATE),
    ),
    "withdrawn without a notice": ((lambda n: n.withdraw(SCHEDULER, "u"),), None),
    "given again": (
        (lambda n: n.put(AGENT, SOON), lambda n: n.withdraw(AGENT, "u"), lambda n: n.put(AGENT, LATE)),
        PodWord(LATE),
    ),
    "an eviction that goes on": ((lambda n: n.put(AGENT, SOON), lambda n: n.keep_own({"u"})), PodWord(SOON)),
    "an eviction that is given up": ((lambda n: n.put(AGENT, SOON), lambda n: n.keep_own({"v"})), PodWord(None)),
    "the scheduler's, whatever the agent evicts": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.keep_own(())),
        PodWord(SOON),
    ),
    "a pod before its deadline": ((lambda n: n.put(SCHEDULER, SOON), lambda n: n.prune({"u"}, (), 159)), PodWord(SOON)),
    "a pod that outlived the scheduler's deadline": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.prune({"u"}, (), 161)),
        PodWord(None),
    ),
    "a pod that ends with a long grace": (
        (lambda n: n.put(SCHEDULER, SOON), lambda n: n.prune((), {"u"}, 161)),
        PodWord(SOON),
    ),
    "a pod whose eviction the API server holds up": (
        (lambda n: n.put(AGENT, SOON), lambda n: n.prune({"u"}, (), 161)),
        PodWord(SOON),
    ),
    "a pod that is not known yet": ((lambda n: n.put(SCHEDULER, SOON), lambda n: n.prune((), (), 159)), PodWord(SOON)),
    "a pod that is gone": ((lambda n: n.put(SCHEDULER, SOON), lambda n: n.prune((), (), 161)), None),
    "a pod that was spared and is gone": (
        (lambda n: n.put(AGENT, SOON), lambda n: n.keep_own(()), lambda n: n.prune((), (), 1)),
        None,
    ),
}


@pytest.mark.parametrize(("changes", "word"), CASES.values(), ids=CASES)
def test_what_a_pod_is_told(changes: tuple[Changes, ...], word: PodWord | None) -> None:
    notices = PodNotices()
    for change in changes:
        change(notices)
    assert notices.of("u") == word


def test_the_same_word_is_the_same_object() -> None:
    """Whoever was told once is not told again."""
    notices = PodNotices()
    notices.put(SCHEDULER, SOON)
    before = notices.of("u")
    notices.put(SCHEDULER, PreemptionNotice("u", 100.0, "soon"))
    notices.put(AGENT, LATE)
    assert notices.of("u") is before


def test_who_is_to_be_woken() -> None:
    notices = PodNotices()
    for uid in ("a", "b"):
        notices.put(AGENT, PreemptionNotice(uid, 100.0, "x"))
        notices.put(SCHEDULER, PreemptionNotice(uid, 90.0, "x"))
    assert notices.keep_own({"a"}) == ("b",) and notices.keep_own({"a"}) == ()
    assert notices.prune({"a", "b"}, (), 151) == ("a", "b") and notices.prune({"a", "b"}, (), 151) == ()


def test_what_is_written_down_is_told_again() -> None:
    """Victims that were told; one that is being evicted has its SIGTERM."""
    notices = PodNotices()
    notices.restore({"a": PendingVictim({}, 1.0, 90.0, 70.0), "b": PendingVictim({}, 1.0, 90.0)})
    told = notices.of("a")
    assert told is not None and told.notice is not None and told.notice.deadline_seconds == 70.0
    assert notices.of("b") is None


def test_they_are_bounded() -> None:
    """Uids of pods that never come fill no memory."""
    notices = PodNotices()
    for number in range(5000):
        notices.put(SCHEDULER, PreemptionNotice(str(number), 1e12, ""))
    assert notices.of("0") is None and notices.of("4999") is not None
