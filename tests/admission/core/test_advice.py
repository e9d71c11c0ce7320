"""Batch pods are told what Koordinator's guide asks of them: requests and limits of both resources, both alike."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import raw_container, raw_pod

from admission.core.advice import advised
from admission.core.validate import PodClaims
from kube.dialects.upstream.amounts import amounts_of
from kube.objects import Pod

BATCH: dict[str, Any] = {"priorityClassName": "koord-batch", "priority": 5500}
CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
WHOLE = {CPU: "1000", MEMORY: "1Gi"}


def told(pod: dict[str, Any]) -> tuple[str, ...]:
    read = msgspec.convert(pod, Pod)
    amounts = amounts_of(read.spec, "Pod batch/job")
    claims = PodClaims(read.metadata.labels or {}, read.metadata.annotations or {}, read.spec.priority)
    return advised(claims, (*amounts.containers, *amounts.init), "Pod batch/job")


CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "both alike": (raw_pod(raw_container(requests=WHOLE, limits=WHOLE), **BATCH), ()),
    "both alike, written otherwise": (
        raw_pod(raw_container(requests=WHOLE, limits={CPU: "1k", MEMORY: "1024Mi"}), **BATCH),
        (),
    ),
    "nothing": (
        raw_pod(raw_container(), **BATCH),
        (f"requests no {CPU} (and 1 more): what it uses", f"limits no {CPU} (and 1 more): it may take all"),
    ),
    "CPU and memory of its own": (
        raw_pod(raw_container(requests={"cpu": "1"}, limits={"cpu": "1"}), **BATCH),
        (f"requests no {CPU} (and 1 more)", f"limits no {CPU} (and 1 more)"),
    ),
    "no limits": (raw_pod(raw_container(requests=WHOLE), **BATCH), (f"limits no {CPU} (and 1 more)",)),
    "no memory": (
        raw_pod(raw_container(requests={CPU: "1"}, limits={CPU: "1"}), **BATCH),
        (f"requests no {MEMORY}:", f"limits no {MEMORY}:"),
    ),
    "unlike": (
        raw_pod(raw_container(requests=WHOLE, limits={CPU: "2000", MEMORY: "1Gi"}), **BATCH),
        (f"requests and limits unlike {CPU}: it may take more than it was counted for",),
    ),
    "several containers": (
        raw_pod(raw_container("a", requests=WHOLE, limits=WHOLE), raw_container("b"), raw_container("c"), **BATCH),
        (f"container b requests no {CPU} (and 3 more)", f"container b limits no {CPU} (and 3 more)"),
    ),
    "by its label": (
        raw_pod(raw_container(), labels={"koordinator.sh/qosClass": "BE"}),
        ("requests no", "limits no"),
    ),
    "free work asks for nothing": (
        raw_pod(
            raw_container(), labels={"koordinator.sh/qosClass": "BE"}, priorityClassName="koord-free", priority=3500
        ),
        (),
    ),
    "no batch pod": (raw_pod(raw_container()), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_advice(name: str) -> None:
    pod, expected = CASES[name]
    found = told(pod)
    assert len(found) == len(expected), found
    for text, words in zip(found, expected, strict=True):
        assert words in text and text.startswith("Pod batch/job: container ") and len(text) <= 256
        assert text.endswith("; batch pods set requests and limits, both alike")
