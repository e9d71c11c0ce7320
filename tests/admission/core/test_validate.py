"""What a pod may not be, by what is written on it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from admission.core.validate import PodClaims, PodRules, violations
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MID_CPU, ResourceVector

QOS, SUB, CLASS = "koordinator.sh/qosClass", "koordinator.sh/priority", "koordinator.sh/priority-class"
QUEUE, VOLCANO = "sublet.dev/queue", "scheduling.volcano.sh/queue-name"


def claims(qos: str = "", priority: int | None = None, /, **more: Any) -> PodClaims:
    labels = {**({QOS: qos} if qos else {}), **more.pop("labels", {})}
    requests = ResourceVector(more.pop("requests", {}))
    return PodClaims(labels, priority=priority, requests=requests, **more)


ONE: dict[str, tuple[PodClaims, list[str]]] = {
    "an ordinary pod": (claims(requests={CPU: 1500}), []),
    "a batch pod": (claims("BE", 5500, requests={BATCH_CPU: 1000}), []),
    "a batch pod by hand (S29)": (
        claims("BE", None, labels={CLASS: "koord-batch"}, requests={BATCH_CPU: 1000, BATCH_MEMORY: 1}),
        [],
    ),
    "a mid pod": (claims("BE", 7000, requests={MID_CPU: 1000}), []),
    "a free pod": (claims("BE", 3000), []),
    "batch CPU without its class": (claims("", 5500, requests={BATCH_CPU: 1}), [f"metadata.labels[{QOS}] is none"]),
    "batch memory of another class": (
        claims("LS", 5500, requests={BATCH_MEMORY: 1}),
        [f"metadata.labels[{QOS}] is LS"],
    ),
    "an unknown class is none": (
        claims("XX", 5500, requests={BATCH_CPU: 1}),
        [f"metadata.labels[{QOS}] is XX, which is no"],
    ),
    "mid resources ask for nothing": (claims("", 7500, requests={MID_CPU: 1}), []),
    "no batch after all": (claims("", 5500, requests={BATCH_CPU: 0}), []),
    "BE without priority": (claims("BE"), ["priority class none cannot be used in combination"]),
    "BE with priority 0": (claims("BE", 0), ["priority class none cannot be used in combination"]),
    "BE and prod": (claims("BE", 9500), ["priority class koord-prod cannot be used in combination"]),
    "BE between the bands": (claims("BE", 6500), ["priority class none"]),
    "the label beats the number": (claims("BE", 9500, labels={CLASS: "koord-batch"}), []),
    "an unknown label does not": (claims("BE", 9500, labels={CLASS: "gold"}), ["priority class koord-prod"]),
    "LS with anything": (claims("LS", 5500), []),
    "LSR and prod": (claims("LSR", 9000, requests={CPU: 2000}), []),
    "LSR without priority": (claims("LSR", requests={CPU: 2000}), ["set spec.priorityClassName to koord-prod"]),
    "LSR and mid": (claims("LSR", 7500, requests={CPU: 2000}), ["priority class koord-mid"]),
    "LSR and batch": (claims("LSR", 5500, requests={CPU: 2000}), ["priority class koord-batch"]),
    "LSR and free": (claims("LSR", 3500, requests={CPU: 2000}), ["priority class koord-free"]),
    "LSE with any priority": (claims("LSE", requests={CPU: 1000}), []),
    "LSR without CPU": (claims("LSR", 9000), ["this one asks for no CPU"]),
    "LSE without CPU": (claims("LSE"), ["this one asks for no CPU"]),
    "LSE with part of a CPU": (claims("LSE", requests={CPU: 1500}), ["this one asks for 1500m"]),
    "a reserved annotation": (
        claims(annotations={"scheduling.koordinator.sh/reserve-pod": "true"}),
        ["metadata.annotations[scheduling.koordinator.sh/reserve-pod] is the scheduler's own"],
    ),
    "everything at once": (claims("LSR", 5500, requests={BATCH_CPU: 1}), ["is LSR", "koord-batch", "no CPU"]),
}


@pytest.mark.parametrize(("pod", "words"), ONE.values(), ids=ONE)
def test_a_pod(pod: PodClaims, words: list[str]) -> None:
    """One sentence for each thing that is wrong, and none for what is not; an unchanged pod is judged the same."""
    for found in (violations(pod, None, PodRules()), violations(pod, pod, PodRules())):
        assert len(found) == len(words)
        assert all(word in sentence for word, sentence in zip(words, found, strict=True))


BATCH = claims("BE", 5500, labels={SUB: "1"})
CHANGED: dict[str, tuple[PodClaims, PodClaims, list[str]]] = {
    "another class": (BATCH, claims("LS", 5500, labels={SUB: "1"}), ["cannot change from BE to LS"]),
    "no class any more": (BATCH, claims("", 5500, labels={SUB: "1"}), ["cannot change from BE to none"]),
    "a class at last": (claims("", 5500), claims("BE", 5500), ["cannot change from none to BE"]),
    "one unknown word for another": (claims("a"), claims("b"), []),
    "another band": (BATCH, claims("BE", 7500, labels={SUB: "1"}), ["from koord-batch to koord-mid"]),
    "another number of the band": (BATCH, claims("BE", 5600, labels={SUB: "1"}), []),
    "a band by label": (claims("LS", 0), claims("LS", 0, labels={CLASS: "koord-prod"}), ["from none to koord-prod"]),
    "another sub-priority": (
        BATCH,
        claims("BE", 5500, labels={SUB: "2"}),
        [f"labels[{SUB}] cannot change from 1 to 2"],
    ),
    "no sub-priority": (BATCH, claims("BE", 5500), [f"labels[{SUB}] cannot change from 1 to none"]),
    "the queue of one that waits": (claims(annotations={VOLCANO: "a"}), claims(annotations={VOLCANO: "b"}), []),
    "the queue of one that has a node": (
        claims(labels={QUEUE: "a"}, annotations={VOLCANO: "a"}, bound=True),
        claims(annotations={VOLCANO: "b"}, bound=True),
        [
            f"metadata.labels[{QUEUE}] is settled once the pod has a node",
            f"metadata.annotations[{VOLCANO}] is settled once the pod has a node",
        ],
    ),
    "a queue as it gets its node": (claims(), claims(labels={QUEUE: "a"}, bound=True), []),
    "anything else": (BATCH, msgspec.structs.replace(BATCH, annotations={"a": "b"}), []),
}


@pytest.mark.parametrize(("old", "new", "words"), CHANGED.values(), ids=CHANGED)
def test_a_change(old: PodClaims, new: PodClaims, words: list[str]) -> None:
    """Class, band and sub-priority are settled at creation."""
    found = violations(new, old, PodRules())
    assert len(found) == len(words) and all(word in each for word, each in zip(words, found, strict=True))


def test_the_sub_priority_may_be_let_free() -> None:
    """As by Koordinator's gate ColocationProfileSkipValidatingPriority."""
    assert violations(claims("BE", 5500), BATCH, PodRules(sub_priority_immutable=False)) == ()
