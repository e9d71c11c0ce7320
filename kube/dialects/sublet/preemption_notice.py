"""Preemption notice: the annotation by which a pod, and whoever looks at it, is told that it goes, by when and why.

One line of JSON. In the pod it is a file of the downward API, which is empty while there is no notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube.objects import Time, unix_seconds
from model.pod.colocation import StandingNotice

ANNOTATION_STANDING_NOTICE = "sublet.dev/preemption-notice"
MOST_BYTES = 2048
"""A longer text is none of ours."""


class _Told(msgspec.Struct, frozen=True):
    deadline: Time
    since: Time
    reason: str = ""
    by: str = ""


def notice_text(notice: StandingNotice) -> str:
    """`{"deadline": "2026-01-02T03:04:05.678Z", "since": …, "reason": …, "by": …}`; times to the millisecond."""
    told = _Told(_time(notice.deadline_seconds), _time(notice.since_seconds), notice.reason, notice.by)
    return msgspec.json.encode(told).decode()


def standing_notice(annotations: Mapping[str, str]) -> StandingNotice | None:
    """None without the annotation, and where it is not what `notice_text` makes."""
    text = annotations.get(ANNOTATION_STANDING_NOTICE)
    if not text or len(text) > MOST_BYTES:
        return None
    try:
        told = msgspec.json.decode(text, type=_Told)
        return StandingNotice(unix_seconds(told.since), unix_seconds(told.deadline), told.reason, told.by)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError):
        return None


def withdrawal(notice: StandingNotice, uid: str) -> list[dict[str, Any]]:
    """A JSON patch that takes this notice of that very pod away; it fails where another notice stands by now."""
    path = f"/metadata/annotations/{ANNOTATION_STANDING_NOTICE.replace('/', '~1')}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": path, "value": notice_text(notice)},
        {"op": "remove", "path": path},
    ]


def _time(seconds: float) -> Time:
    return msgspec.convert(round(seconds, 3), Time, strict=False)
