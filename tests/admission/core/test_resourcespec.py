"""The annotation says all that is lent, and only that."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import raw_container, raw_pod

from admission.core.resourcespec import ANNOTATION, with_resource_spec
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU

LENT = {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"}


def told(pod: dict[str, Any]) -> Any:
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    return text and msgspec.json.decode(text)


CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "a container": (
        raw_pod(raw_container(requests=LENT, limits={BATCH_CPU: "2k"})),
        {"containers": {"main": {"requests": LENT, "limits": {BATCH_CPU: "2000"}}}},
    ),
    "an init container": (
        raw_pod(raw_container(), initContainers=[raw_container("init", requests=LENT)]),
        {"containers": {"init": {"requests": LENT}}},
    ),
    "overhead": (raw_pod(raw_container(), overhead=LENT), {"overhead": LENT}),
    "mid": (raw_pod(raw_container(requests={MID_CPU: "1"})), {"containers": {"main": {"requests": {MID_CPU: "1"}}}}),
    "native amounts": (raw_pod(), None),
    "one of somebody else's making": (raw_pod(annotations={ANNOTATION: '{"containers":{"x":{}}}'}), None),
    "an unreadable one": (
        raw_pod(raw_container(requests=LENT), annotations={ANNOTATION: "{"}),
        {"containers": {"main": {"requests": LENT}}},
    ),
}


@pytest.mark.parametrize(("pod", "result"), CASES.values(), ids=CASES)
def test_annotation(pod: dict[str, Any], result: Any) -> None:
    """It is made from the pod, whatever stood there before."""
    assert told(with_resource_spec(pod)) == result


def test_other_notations_of_the_same_amounts_are_left_alone() -> None:
    """The API server stores 2k for 2000 and 4Gi for 4096Mi: an update must not write the annotation for that."""
    text = (
        '{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"2000","kubernetes.io/batch-memory":"4096Mi"}}}}'
    )
    pod = raw_pod(raw_container(requests={BATCH_CPU: "2k", BATCH_MEMORY: "4Gi"}), annotations={ANNOTATION: text})
    assert with_resource_spec(pod) == pod
