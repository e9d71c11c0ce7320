"""Taints and tolerations as they are written."""

from __future__ import annotations

import pytest

from kube import objects
from kube.dialects.documents.taints import taint, toleration
from model.node import Taint, TaintEffect
from model.pod.spec import Toleration, TolerationOperator


def test_taints() -> None:
    assert taint(objects.Taint("a", "b", "NoExecute")) == Taint("a", "b", TaintEffect.NO_EXECUTE)
    assert taint(objects.Taint("a", "b", "New")).effect is TaintEffect.UNKNOWN


CASES: dict[str, tuple[objects.Toleration, Toleration]] = {
    "exists": (objects.Toleration("a", "Exists"), Toleration("a", TolerationOperator.EXISTS)),
    "equal": (objects.Toleration("a", "Equal", "v"), Toleration("a", TolerationOperator.EQUAL, "v")),
    "no operator": (objects.Toleration("a", "", "v"), Toleration("a", TolerationOperator.EQUAL, "v")),
    "an effect": (
        objects.Toleration("a", "Exists", "", "NoSchedule"),
        Toleration("a", TolerationOperator.EXISTS, "", TaintEffect.NO_SCHEDULE),
    ),
}


@pytest.mark.parametrize(("source", "wanted"), CASES.values(), ids=CASES)
def test_tolerations(source: objects.Toleration, wanted: Toleration) -> None:
    assert toleration(source) == wanted
