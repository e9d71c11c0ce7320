"""Eviction terms of a pod: Koordinator's label and annotations, and our notice.

Source: Koordinator apis/extension/{evict,priority}.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from kube.dialects.sublet.pod_annotations import notice_seconds
from kube.dialects.sublet.preemption_notice import standing_notice
from model.pod.colocation import EvictionTerms

LABEL_ENABLED = "koordinator.sh/eviction-enabled"
LABEL_PRIORITY = "koordinator.sh/priority"
ANNOTATION_POLICY = "koordinator.sh/eviction-policy"
ANNOTATION_PRIORITY = "koordinator.sh/eviction-priority"
_INT32 = 1 << 31


def eviction_terms(labels: Mapping[str, str], annotations: Mapping[str, str]) -> EvictionTerms:
    """What the pod says of its eviction. A policy that is no list of names lets no rule evict it; a priority that is no
    number counts as unset.
    """
    return EvictionTerms(
        enabled=labels.get(LABEL_ENABLED) == "true",
        features=_features(annotations.get(ANNOTATION_POLICY)),
        priority=_int32(annotations.get(ANNOTATION_PRIORITY, "")) or 0,
        sub_priority=_int32(labels.get(LABEL_PRIORITY, "")),
        notice_seconds=notice_seconds(annotations),
        standing=standing_notice(annotations),
    )


def reads_features(text: str) -> bool:
    """Whether a policy is a list of names."""
    return _listed(text) is not None


def reads_number(text: str) -> bool:
    """Whether a priority is a number."""
    return _int32(text) is not None


def _features(text: str | None) -> frozenset[str] | None:
    return None if text is None else _listed(text) or frozenset()


def _listed(text: str) -> frozenset[str] | None:
    try:
        return frozenset(msgspec.json.decode(text, type=list[str] | None) or ())
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _int32(text: str) -> int | None:
    number = int(text) if text and re.fullmatch(r"[+-]?[0-9]{1,10}", text, re.ASCII) else None
    return number if number is not None and -_INT32 <= number < _INT32 else None
