"""A decision as text, with the time at which it was made."""

from __future__ import annotations

from datetime import UTC, datetime

from model import explain
from model.decision import Decision


def dated(decision: Decision, now: float) -> str:
    """What was found at the last attempt need not hold any more, so its time stands beside it."""
    told = explain.lines(decision)
    if decision.at_seconds:
        at = datetime.fromtimestamp(decision.at_seconds, UTC)
        told.append(f"  decided at {at:%Y-%m-%dT%H:%M:%SZ}, {max(now - decision.at_seconds, 0):.0f} s ago")
    return "\n".join(told)
