"""The cause why a node lends nothing, or less than it might, from what the cluster alone knows of it.

That is what is left to ask where its agent is silent. The nearest cause counts, in the order in which a person would
look: is the agent running, does it measure, does it withhold by its own account, is anything idle.
Source: Koordinator's batch quick start, "batch resources unavailable".
"""

from __future__ import annotations

import msgspec

from model.lender import SILENT_SECONDS
from model.reason import Reason, words
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector


class LendingRecord(msgspec.Struct, frozen=True):
    """What the objects of a node say; times in Unix seconds, None where nothing was ever written.

    `heartbeat_seconds`, `ready` and `reason` are of the condition ColocationReady, `metric_seconds` of the NodeMetric.
    `answers` is whether the agent answered just before, None where it was not asked. `allocatable` is what of the
    offer is believed, `doubt` why the rest is not.
    """

    node: str
    heartbeat_seconds: float | None = None
    ready: bool = False
    reason: str = ""
    metric_seconds: float | None = None
    allocatable: ResourceVector = ResourceVector()
    answers: bool | None = None
    doubt: str = ""


class Lending(msgspec.Struct, frozen=True):
    """The cause as a code, Computed where the node lends both resources; `detail` has the ages it was told from.

    `offered` is what pods are offered at this moment, of "CPU" and "memory".
    """

    node: str
    reason: Reason
    detail: str
    offered: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line of text."""
        return f"node {self.node} {self._does} ({self.reason.value}: {self._because}; {self.detail})"

    @property
    def _does(self) -> str:
        if self.reason is Reason.AGENT_NOT_RUNNING:
            return "lends nothing that can be relied on"
        missing = self._missing
        if not missing:
            return "lends batch resources" + ("" if self.reason is Reason.COMPUTED else " all the same")
        return f"lends {self.offered[0]} but no {missing[0]}" if self.offered else "lends nothing"

    @property
    def _because(self) -> str:
        if self.reason is Reason.NOTHING_IDLE and self.offered:
            return f"no {self._missing[0]} is idle on the node beyond its margin"
        return words(self.reason)

    @property
    def _missing(self) -> tuple[str, ...]:
        return tuple(kind for kind in _KINDS.values() if kind not in self.offered)


_KINDS = {BATCH_CPU: "CPU", BATCH_MEMORY: "memory"}


def lending(account: LendingRecord, now: float, degrade_seconds: float) -> Lending:
    """`degrade_seconds` is the age from which a NodeMetric is no ground for lending (degradeTimeMinutes)."""
    reason = (
        (Reason.OFFER_NOT_BELIEVED if account.doubt else None)
        or _observes(account)
        or _agent(account, now)
        or _metric(account, now, degrade_seconds)
        or _withheld(account)
        or _idle(account)
    )
    offered = () if _withheld(account) else _offered(account)
    doubt = f"{account.doubt}; " if account.doubt else ""
    detail = (
        f"{doubt}agent heard {_age(account.heartbeat_seconds, now)}, NodeMetric {_age(account.metric_seconds, now)}"
    )
    return Lending(account.node, reason, detail, offered)


def _observes(account: LendingRecord) -> Reason | None:
    """An agent that observes says so once, as it begins, and is silent from then on."""
    said = not account.ready and account.reason == Reason.OBSERVING.value
    return Reason.OBSERVING if said and account.answers is not False else None


def _agent(account: LendingRecord, now: float) -> Reason | None:
    heard = account.heartbeat_seconds
    silent = heard is None or now - heard > SILENT_SECONDS
    gone = silent if account.answers is None else not account.answers
    return Reason.AGENT_NOT_RUNNING if gone else None


def _metric(account: LendingRecord, now: float, degrade_seconds: float) -> Reason | None:
    if account.metric_seconds is None:
        return Reason.NODE_METRICS_MISSING
    return Reason.NODE_METRICS_STALE if now - account.metric_seconds > degrade_seconds else None


def _withheld(account: LendingRecord) -> Reason | None:
    """The agent's own account of why it withholds; a code of another release counts as nothing idle."""
    known = {reason.value for reason in Reason}
    return Reason(account.reason) if not account.ready and account.reason in known else None


def _idle(account: LendingRecord) -> Reason:
    """A pod needs both resources, so one alone is no room."""
    return Reason.COMPUTED if len(_offered(account)) == len(_KINDS) else Reason.NOTHING_IDLE


def _offered(account: LendingRecord) -> tuple[str, ...]:
    return tuple(kind for name, kind in _KINDS.items() if account.allocatable.amounts.get(name, 0) > 0)


def _age(at_seconds: float | None, now: float) -> str:
    return "never" if at_seconds is None else f"{max(now - at_seconds, 0):.0f} s ago"
