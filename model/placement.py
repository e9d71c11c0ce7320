"""Placement: which pod goes to which node, how far that has come, and who must go for it."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from model.workload import WorkloadId


class PlacementState(StrEnum):
    """ASSUMED counts against the node at once; BOUND is confirmed by the API server.

    NOMINATED waits for victims to go: it counts against its node for whoever has no higher priority.
    """

    NOMINATED = "nominated"
    ASSUMED = "assumed"
    BOUND = "bound"


class Placement(msgspec.Struct, frozen=True):
    """One pod on one node; `annotations` are written to the pod as it is bound, sorted by name."""

    pod_key: str
    pod_uid: str
    node: str
    state: PlacementState = PlacementState.ASSUMED
    annotations: tuple[tuple[str, str], ...] = ()


class Victim(msgspec.Struct, frozen=True):
    """A pod that is to go; `subject` is its job.

    `notice_seconds` is how long before its end it asks to be told, 0 where it does not. `queue` governs it;
    `reclaimed`: the preemptor's queue takes it back, whatever its priority. `left_until_seconds`: it is expected to end
    by itself, and goes at that Unix time if it has not; 0 where nothing is waited for.
    """

    pod_key: str
    uid: str
    node: str
    subject: WorkloadId
    notice_seconds: float = 0.0
    queue: str = ""
    reclaimed: bool = False
    left_until_seconds: float = 0.0


class ScoreTerm(msgspec.Struct, frozen=True):
    """Points (0 to 100 as a rule) of one score, by its plugin's name, on the chosen node and on the next best.

    Each counts `weight` times.
    """

    name: str
    weight: int
    chosen: int
    runner_up: int = 0


class Scored(msgspec.Struct, frozen=True):
    """Why `node` and not `runner_up`, which is empty where no other node had room."""

    node: str
    runner_up: str = ""
    terms: tuple[ScoreTerm, ...] = ()


class PlanState(StrEnum):
    """How far an EvictionPlan has come; RELEASED and ABORTED are its ends."""

    PROPOSED = "Proposed"
    NOTIFIED = "Notified"
    CHECKPOINT_WAIT = "CheckpointWait"
    TERMINATING = "Terminating"
    RELEASED = "Released"
    ABORTED = "Aborted"


class EvictionPlan(msgspec.Struct, frozen=True):
    """Room for `preemptor` (a subject), begun by its pod `trigger` (`namespace/name`): victims out, placements in.

    At `deadline_seconds` (Unix time) victims that were told go whether they saved a checkpoint or not. `queue` governs
    the preemptor; the root's where none does.
    """

    preemptor: WorkloadId
    trigger: str
    victims: tuple[Victim, ...]
    placements: tuple[Placement, ...]
    deadline_seconds: float = 0.0
    state: PlanState = PlanState.PROPOSED
    queue: str = ""

    @property
    def going(self) -> tuple[Victim, ...]:
        """The victims that are not left to end first."""
        return tuple(victim for victim in self.victims if not victim.left_until_seconds)
