"""Scores of a pod's containers, as annotations write them."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.oomscores import ANNOTATION, ANNOTATION_SPEC, oom_scores, reads_score, reads_scores
from model.pod.colocation import OomScores

OF_ALL: dict[str, tuple[str, int | None]] = {
    "a number": ("-500", -500),
    "the least": ("-1000", -1000),
    "the most": ("1000", 1000),
    "with a sign": ("+5", 5),
    "out of range": ("1001", None),
    "below the range": ("-1001", None),
    "very long": ("9" * 5000, None),
    "a fraction": ("1.5", None),
    "two signs": ("--5", None),
    "other digits": ("٣", None),
    "a sign alone": ("-", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("text", "expected"), OF_ALL.values(), ids=OF_ALL)
def test_of_all_containers(text: str, expected: int | None) -> None:
    """What cannot be read says nothing, and is told of by whoever asks whether it reads."""
    found = oom_scores({ANNOTATION: text})
    assert (found and found.of("app")) == expected
    assert reads_score(text) is (expected is not None)


OF_EACH: dict[str, tuple[str, dict[str, int] | None]] = {
    "two": ('{"app": -500, "log": 200}', {"app": -500, "log": 200}),
    "none": ("{}", {}),
    "out of range": ('{"app": 1001}', None),
    "a text": ('{"app": "5"}', None),
    "a list": ("[]", None),
    "no JSON": ("{", None),
    "empty": ("", None),
}


@pytest.mark.parametrize(("text", "expected"), OF_EACH.values(), ids=OF_EACH)
def test_of_each_container(text: str, expected: dict[str, int] | None) -> None:
    """By its name."""
    found = oom_scores({ANNOTATION_SPEC: text})
    assert found == (OomScores(None, tuple(sorted(expected.items()))) if expected else None)
    assert reads_scores(text) is (expected is not None)


def test_both() -> None:
    """One that is named goes by that, all others by the pod's."""
    found = oom_scores({ANNOTATION: "100", ANNOTATION_SPEC: '{"app": -5}'})
    assert found is not None
    assert (found.of("app"), found.of("log")) == (-5, 100)
    assert oom_scores({}) is None
