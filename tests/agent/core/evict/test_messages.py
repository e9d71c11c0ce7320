"""What pods and nodes are told about evictions."""

from __future__ import annotations

import json

import msgspec
import pytest

from agent.core.evict.eviction_request import EvictionRequest, EvictionRequestKind, OutcomeKind
from agent.core.evict.messages import annotation, kill_message, node_message, pod_message
from agent.core.limit.watch import Kill, PreparedVictim
from model.decision import Decision, Term, Unit
from model.reason import Reason

GIB = 1 << 30
EVICT = EvictionRequest(
    EvictionRequestKind.EVICT,
    "uid-a",
    "ns",
    "a",
    Decision(
        "pod/ns/a",
        "evict",
        2 * GIB,
        Unit.BYTES,
        Reason.BE_MEMORY_EVICT,
        (Term("resident memory", 3 * GIB), Term("shared", -GIB)),
        at_seconds=100.0,
        detail="lowest priority",
    ),
)
NOTIFY = msgspec.structs.replace(EVICT, kind=EvictionRequestKind.NOTIFY, deadline_seconds=130.2)
CPU = msgspec.structs.replace(
    EVICT,
    grace_seconds=1,
    decision=Decision("pod/ns/a", "evict", 1500, Unit.MILLI_CPU, Reason.BE_CPU_EVICT, (Term("request", 1500),)),
)
WHY = "the node uses too much memory; the pod's end frees 2Gi of memory; lowest priority"

POD_CASES = {
    "evicted": (EVICT, OutcomeKind.EVICTED, "", f"Evicted: {WHY}"),
    "shortened grace": (
        CPU,
        OutcomeKind.EVICTED,
        "",
        "Evicted with 1 s of grace: best effort gets too little of the CPU it asked for; the pod's end frees 1500m of CPU",
    ),
    "blocked": (
        EVICT,
        OutcomeKind.BLOCKED,
        "429 b needs 2",
        f"Not evicted, since a disruption budget forbids it: {WHY} (429 b needs 2)",
    ),
    "failed": (EVICT, OutcomeKind.FAILED, "403 no", f"Not evicted (failed): {WHY} (403 no)"),
    "notice": (
        NOTIFY,
        OutcomeKind.NOTIFIED,
        "",
        f"Will be evicted within 30 s, earlier once it has reported a checkpoint: {WHY}",
    ),
    "notice without a deadline": (
        msgspec.structs.replace(NOTIFY, deadline_seconds=None),
        OutcomeKind.NOTIFIED,
        "",
        f"Will be evicted as soon as it has reported a checkpoint: {WHY}",
    ),
}


@pytest.mark.parametrize(("eviction", "outcome", "detail", "text"), POD_CASES.values(), ids=POD_CASES)
def test_a_pods_owner_learns_what_and_why(
    eviction: EvictionRequest, outcome: OutcomeKind, detail: str, text: str
) -> None:
    """In words: no control files, no terms."""
    assert pod_message(eviction, outcome, detail) == text


def test_the_node_hears_the_same() -> None:
    """Which pod, then what its own Event says."""
    text = node_message(EVICT, OutcomeKind.BLOCKED, "429")
    assert text.startswith("Pod ns/a not evicted, since a disruption budget forbids it: ") and text.endswith("(429)")
    assert node_message(EVICT, OutcomeKind.EVICTED).startswith("Pod ns/a evicted: ")


def test_the_annotation_is_the_decision() -> None:
    """JSON whose terms sum to its value; the outcome stands there only where the pod lives on."""
    told = json.loads(annotation(EVICT))
    decision = told["decision"]
    assert sum(term["value"] for term in decision["terms"]) == decision["value"] == 2 * GIB
    assert (told["kind"], decision["reason"], decision["subject"]) == ("evict", "BEMemoryEvict", "pod/ns/a")
    assert not {"outcome", "deadline_seconds", "grace_seconds"} & told.keys() and "= 2Gi" in told["text"]
    assert msgspec.json.decode(msgspec.json.encode(decision), type=Decision) == EVICT.decision
    assert json.loads(annotation(NOTIFY))["deadline_seconds"] == 130.2
    blocked = json.loads(annotation(CPU, OutcomeKind.BLOCKED))
    assert (blocked["outcome"], blocked["grace_seconds"]) == ("blocked", 1)


@pytest.mark.parametrize(("count", "shown"), [(0, "0 processes"), (1, "1 process"), (3, "3 processes")])
def test_a_kill_tells_what_was_left(count: int, shown: str) -> None:
    """Memory then, memory won, processes reached."""
    victim = PreparedVictim("u", "ns", "a", "/kubepods/besteffort/podu", 2 * GIB)
    text = kill_message(Kill(victim, 1.0, 2.0, 64 << 20, count))
    assert text.startswith("memory was about to run out")
    assert text.endswith(f"64Mi were left, the pod's end frees 2Gi; {shown} reached")
