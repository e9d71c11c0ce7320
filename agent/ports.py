"""What the tick needs from the outside, as protocols; edges implement them, tests have fakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from agent.core.brake import BrakePlan, Cut
from agent.core.limits import Limits
from agent.core.observation import Knob, KnobReading, Observation
from agent.core.plan import Write
from agent.core.usage import NodeUsage
from model.decision import Decision
from model.node import Node
from model.pod import Pod
from model.report import NodeReport
from model.strategy import ColocationStrategy, SuppressStrategy


class ClusterFacts(msgspec.Struct, frozen=True):
    """What the API server says.

    `pods` is None until the list was read once, `pods_age_seconds` how long the server was silent about them;
    `problem` names a document that is invalid or not read yet, so that older settings are in force.
    """

    node: Node | None
    pods: tuple[Pod, ...] | None
    colocation: ColocationStrategy
    suppress: SuppressStrategy
    problem: str = ""
    pods_age_seconds: float = 0.0


class KnobReadings(msgspec.Struct, frozen=True):
    """All owned knobs and the brake's count, read at one instant."""

    readings: Mapping[Knob, KnobReading]
    brake_cuts: int
    last_cut_monotonic: float | None


class WriteOutcome(msgspec.Struct, frozen=True):
    """`error` is empty when the kernel took the value; `dropped` when the brake had cut below it meanwhile."""

    write: Write
    error: str = ""
    dropped: bool = False


class TickResult(msgspec.Struct, frozen=True):
    """Everything one tick saw, decided and did."""

    observation: Observation
    facts: ClusterFacts
    usage: NodeUsage | None
    reclaimable: tuple[Decision, ...]
    limits: Limits
    cuts: tuple[Decision, ...]
    outcomes: tuple[WriteOutcome, ...]
    report: NodeReport | None
    degraded_reason: str


class Cluster(Protocol):
    """The newest facts of the API server; never waits."""

    def facts(self) -> ClusterFacts: ...


class Observer(Protocol):
    """One pass over the node's files."""

    def observe(self, facts: ClusterFacts, knobs: KnobReadings) -> Observation: ...


class Executor(Protocol):
    """The single writer of control files."""

    def readings(self, knobs: tuple[Knob, ...]) -> KnobReadings: ...

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        """Write in order; a value above the kernel's is dropped when the brake has cut since `seen_cuts`."""
        ...


class Brake(Protocol):
    """Watches between ticks; only ever lowers."""

    def arm(self, plan: BrakePlan | None) -> None: ...

    def drain(self) -> tuple[Cut, ...]: ...


class Sink(Protocol):
    """Takes a finished tick; must not block."""

    def take(self, result: TickResult) -> None: ...
