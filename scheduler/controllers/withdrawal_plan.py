"""When a node's agent has been silent for so long that nothing may be lent there any more.

The heartbeat is dated by the node's clock, which may be wrong by any amount, so the date alone proves nothing: an agent
that still renews it is alive whatever it writes, and one that stopped is silent even with a date in the future.
Source of the duration: Koordinator degradeTimeMinutes (slo-controller-config, colocation-config).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kube.dialects.koordinator.sloconfig import ColocationFields, Layers, colocation_overlaid
from model.condition import ConditionStatus, ConditionType
from model.lender import SILENT_SECONDS, Lender
from model.reason import Reason, words
from model.strategy import ColocationStrategy


class WithdrawPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Taking back what a silent agent offered."""

    enabled: Annotated[bool, Meta(description="Withdraw what a node lends once its agent is silent.")] = True
    after_seconds: Annotated[
        Annotated[float, Meta(ge=75, le=86_400)] | None,
        Meta(
            description="Silence after which what a node lends is withdrawn; none: degradeTimeMinutes of "
            "slo-controller-config. An agent renews its word each minute."
        ),
    ] = None


class LastHeartbeat(msgspec.Struct, frozen=True):
    """The newest heartbeat of a node, and since when we know it (Unix seconds, our clock that never goes back)."""

    heartbeat_seconds: float
    since_seconds: float


def heard(before: LastHeartbeat | None, lender: Lender, now: float) -> LastHeartbeat | None:
    """What is known after the node's newest word; None where no agent of ours speaks for it."""
    if lender.heartbeat_seconds is None:
        return None
    if before is not None and before.heartbeat_seconds == lender.heartbeat_seconds:
        return before
    return LastHeartbeat(lender.heartbeat_seconds, now)


def silent_at(heard: LastHeartbeat, after_seconds: float) -> float:
    """From when (our clock) the agent counts as silent, unless it is heard again.

    Never before we have waited for three beats ourselves, so that neither a clock that is behind nor a leader that has
    just started withdraws from agents that are alive; and at the latest after the whole time by our own clock.
    """
    waited = heard.since_seconds + min(after_seconds, SILENT_SECONDS)
    return min(heard.since_seconds + after_seconds, max(waited, heard.heartbeat_seconds + after_seconds))


def overdue(lender: Lender, heard: LastHeartbeat | None, after_seconds: float, now: float) -> bool:
    """Whether the node offers something that nobody stands by."""
    return bool(lender.offered) and heard is not None and now >= silent_at(heard, after_seconds)


def silence_allowed(lender: Lender, policy: WithdrawPolicy, layers: Layers[ColocationFields] | None) -> float:
    """Seconds after which the node's agent counts as silent: the setting's, else what slo-controller-config says."""
    if policy.after_seconds is not None:
        return policy.after_seconds
    strategy = ColocationStrategy()
    for layer in layers.of(lender.labels) if layers else ():
        strategy = colocation_overlaid(strategy, layer)
    return strategy.degrade_seconds


def withdrawn(lender: Lender, stamp: str) -> dict[str, Any]:
    """The patch of the Node's status; `stamp` is now as the API writes times.

    Of that very version of the Node: whatever happened to it since makes it a conflict. The heartbeat stays the
    agent's own: how long it has been silent is what it is for.
    """
    amounts = dict.fromkeys(lender.offered, "0")
    condition = {
        "type": ConditionType.COLOCATION_READY,
        "status": ConditionStatus.FALSE,
        "reason": Reason.AGENT_NOT_RUNNING.value,
    }
    condition["message"] = words(Reason.AGENT_NOT_RUNNING)
    if lender.ready:
        condition["lastTransitionTime"] = stamp
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
    return {"metadata": {"resourceVersion": lender.version}, "status": status}
