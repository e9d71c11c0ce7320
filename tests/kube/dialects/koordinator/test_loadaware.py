"""A pod's words on its estimate."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.loadaware import load_terms
from model.pod.colocation import LoadTerms

PREFIX = "scheduling.koordinator.sh/load-estimated-"

CASES: dict[str, tuple[dict[str, str], LoadTerms]] = {
    "nothing": ({}, LoadTerms()),
    "factors, by name": ({"scaling-factors": '{"memory": 60, "cpu": 80}'}, LoadTerms((("cpu", 80), ("memory", 60)))),
    "times": (
        {"seconds-after-pod-scheduled": "90", "seconds-after-initialized": "0"},
        LoadTerms((), 90.0, 0.0),
    ),
    "broken JSON": ({"scaling-factors": "{"}, LoadTerms()),
    "no percent": ({"scaling-factors": '{"cpu": 0, "memory": -3}'}, LoadTerms()),
    "no number": ({"seconds-after-pod-scheduled": "soon", "seconds-after-initialized": "-1"}, LoadTerms()),
}


@pytest.mark.parametrize(("annotations", "expected"), CASES.values(), ids=CASES.keys())
def test_load_terms(annotations: dict[str, str], expected: LoadTerms) -> None:
    """What cannot be read says nothing."""
    assert load_terms({PREFIX + name: text for name, text in annotations.items()}) == expected
