"""Scores by which the kernel chooses whom it kills, as a pod's annotations say them.

Source: Koordinator apis/extension/constants.go, pkg/koordlet/runtimehooks/hooks/oomscoreadj/helper.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from kube.dialects.documents.document import checked, parsed
from model.fault import ConfigurationFault
from model.pod.colocation import OomScores

ANNOTATION, ANNOTATION_SPEC = "koordinator.sh/oom-score-adj", "koordinator.sh/oom-score-adj-spec"
_LEAST, _MOST = -1000, 1000
_Score = Annotated[int, Meta(ge=_LEAST, le=_MOST)]


def oom_scores(annotations: Mapping[str, str]) -> OomScores | None:
    """What the pod says of all its containers and of single ones; what cannot be read says nothing."""
    of_all, of_each = _of_all(annotations.get(ANNOTATION, "")), _of_each(annotations) or {}
    return OomScores(of_all, tuple(sorted(of_each.items()))) if of_all is not None or of_each else None


def reads_score(text: str) -> bool:
    """Whether it is a whole number from -1000 to 1000."""
    return _of_all(text) is not None


def reads_scores(text: str) -> bool:
    """Whether it is a JSON object of such numbers."""
    return _of_each({ANNOTATION_SPEC: text}) is not None


def _of_all(text: str) -> int | None:
    digits = text.removeprefix("-").removeprefix("+") if text[:1] in "+-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20:
        return None
    score = int(text)
    return score if _LEAST <= score <= _MOST else None


def _of_each(annotations: Mapping[str, str]) -> dict[str, int] | None:
    text = annotations.get(ANNOTATION_SPEC, "")
    if not text:
        return None
    try:
        return checked(parsed(text, "Pod"), dict[str, _Score], "Pod")
    except ConfigurationFault:
        return None
