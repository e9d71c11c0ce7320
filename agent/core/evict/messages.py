"""Eviction messages to a pod and a node: the annotation with the whole record, and Events in plain words."""

from __future__ import annotations

import msgspec

from agent.core.evict.eviction_request import EvictionRequest, EvictionRequestKind, OutcomeKind
from agent.core.limit.watch import Kill
from model.decision import Decision, Unit
from model.explain import amount, sentence
from model.reason import Reason, words

ANNOTATION = "sublet.dev/eviction"
"""On a pod that is told to go, or was: the decision as JSON."""

_NOUNS = {Unit.BYTES: " of memory", Unit.MILLI_CPU: " of CPU"}


class _Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The annotation; `outcome` is there once the request did not end the pod. Times are Unix seconds."""

    kind: EvictionRequestKind
    text: str
    decision: Decision
    grace_seconds: int | None = None
    deadline_seconds: float | None = None
    outcome: OutcomeKind | None = None


def annotation(request: EvictionRequest, outcome: OutcomeKind | None = None) -> str:
    """The annotation's value."""
    text = sentence(request.decision)
    told = _Told(request.kind, text, request.decision, request.grace_seconds, request.deadline_seconds, outcome)
    return msgspec.json.encode(told).decode()


def why(decision: Decision) -> str:
    """The cause and what an eviction frees, for whoever owns the pod."""
    freed = amount(decision.value, decision.unit) + _NOUNS.get(decision.unit, "")
    text = f"{words(decision.reason)}; the pod's end frees {freed}"
    return f"{text}; {decision.detail}" if decision.detail else text


def pod_message(request: EvictionRequest, outcome: OutcomeKind, detail: str = "") -> str:
    """For the pod's Event: what happened to it, and why."""
    cause = why(request.decision)
    match outcome:
        case OutcomeKind.NOTIFIED:
            return f"Will be evicted {_when(request)}: {cause}"
        case OutcomeKind.EVICTED:
            grace = "" if request.grace_seconds is None else f" with {request.grace_seconds} s of grace"
            return f"Evicted{grace}: {cause}"
        case OutcomeKind.BLOCKED:
            return f"Not evicted, since a disruption budget forbids it: {cause} ({detail})"
        case OutcomeKind.SPARED:
            return f"Stays: {cause}"
    return f"Not evicted ({outcome.value}): {cause} ({detail})"


def node_message(request: EvictionRequest, outcome: OutcomeKind, detail: str = "") -> str:
    """For the node's Event: which pod, and the same words."""
    text = pod_message(request, outcome, detail)
    return f"Pod {request.namespace}/{request.name} {text[0].lower()}{text[1:]}"


def kill_message(kill: Kill) -> str:
    """For the Events of a kill on the spot."""
    left, freed = amount(kill.available_bytes, Unit.BYTES), amount(kill.victim.frees_bytes, Unit.BYTES)
    count = "1 process" if kill.processes == 1 else f"{kill.processes} processes"
    return f"{words(Reason.MEMORY_LAST_RESORT)}; {left} were left, the pod's end frees {freed}; {count} reached"


def _when(request: EvictionRequest) -> str:
    if request.deadline_seconds is None:
        return "as soon as it has reported a checkpoint"
    seconds = max(round(request.deadline_seconds - request.decision.at_seconds), 0)
    return f"within {seconds} s, earlier once it has reported a checkpoint"
