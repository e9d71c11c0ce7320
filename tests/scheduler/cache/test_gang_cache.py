"""PodGroups as the scheduler keeps them."""

from __future__ import annotations

from scheduler_builders import raw_group
from structlog.testing import capture_logs

from kube.dialects.gangs.podgroups import PARTIAL_SINCE
from kube.informer import Change, ChangeKind
from scheduler.cache.gang_cache import GangCache


def test_an_unreadable_mark_is_told_once() -> None:
    """Not with each change of its PodGroup; another text is told again."""
    book = GangCache()
    with capture_logs() as logs:
        for text, minimum in (("soon", 2), ("soon", 3), ("later", 3), ("2026-01-01T00:00:00Z", 3)):
            book.seen(Change(ChangeKind.MODIFIED, raw_group(minimum=minimum, annotations={PARTIAL_SINCE: text})))
    assert [line["error"].partition("; ")[0] for line in logs] == [
        f"PodGroup default/train: metadata.annotations[{PARTIAL_SINCE}] is {text!r}" for text in ("soon", "later")
    ]
