"""A pod's own words on how its use is estimated before it is measured.

Source: Koordinator apis/extension/load_aware.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from model.pod.colocation import LoadTerms

_PREFIX = "scheduling.koordinator.sh/load-estimated-"
ANNOTATION_FACTORS = _PREFIX + "scaling-factors"
ANNOTATION_AFTER_SCHEDULED = _PREFIX + "seconds-after-pod-scheduled"
ANNOTATION_AFTER_INITIALIZED = _PREFIX + "seconds-after-initialized"
_UNTOLD = LoadTerms()
_WHOLE = re.compile(r"[0-9]{1,9}")
_Percent = dict[str, int]


def load_terms(annotations: Mapping[str, str]) -> LoadTerms:
    """What cannot be read says nothing, as in Koordinator; so does a negative time, or a factor of no percent."""
    told = [
        annotations.get(key) for key in (ANNOTATION_FACTORS, ANNOTATION_AFTER_SCHEDULED, ANNOTATION_AFTER_INITIALIZED)
    ]
    if not any(told):
        return _UNTOLD
    return LoadTerms(_factors(told[0] or ""), _seconds(told[1] or ""), _seconds(told[2] or ""))


def reads_factors(text: str) -> bool:
    """Whether it is an object, and all of it counts."""
    told = _percent(text)
    return told is not None and len(_factors(text)) == len(told)


def reads_seconds(text: str) -> bool:
    """Whether it is a number of seconds."""
    return _seconds(text) is not None


def _factors(text: str) -> tuple[tuple[str, int], ...]:
    told = _percent(text) or {}
    return tuple(sorted((name, percent) for name, percent in told.items() if 0 < percent <= 1000))


def _percent(text: str) -> dict[str, int] | None:
    try:
        return msgspec.json.decode(text, type=_Percent)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _seconds(text: str) -> float | None:
    return float(text) if _WHOLE.fullmatch(text) else None
