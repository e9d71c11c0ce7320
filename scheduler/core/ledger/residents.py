"""Residents: every charged pod as arrays, for rules that look at all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntFlag

import msgspec
import numpy as np
import numpy.typing as npt

from model.placement import PlacementState
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.ledger.charge import Charge
from scheduler.core.snapshot.snapshot import Amounts


class Flag(IntFlag):
    """What is special about a resident; several may be set."""

    ASSUMED = 1
    DELETING = 2
    PROTECTED = 4
    DISRUPTED = 8
    BELOW_PROD = 16
    MINIMUM_MEMBER = 32


_ASSUMED, _DELETING, _PROTECTED, _DISRUPTED, _BELOW_PROD, _MINIMUM_MEMBER = (int(flag) for flag in Flag)


class Residents(msgspec.Struct, frozen=True, eq=False):
    """Arrays indexed by slot, valid until the ledger next changes and never written to; a free slot has row −1.

    `rows` are the snapshot's (−1 also: not on a node of it), `slot_of` is by uid. `classes` index `class_requests`
    (class × the snapshot's columns) and `class_scored` (the same as scores count it). `subjects` number jobs and index
    `subject_names`, `subject_numbers` is the way back; `queues` index `queue_names`, the queues that govern them.
    `outer_priorities` are what counts beside work of other queues. `started` is Unix seconds, 0 where not known.
    """

    pods: Sequence[Pod | None]
    charges: Sequence[Charge | None]
    slot_of: Mapping[str, int]
    rows: npt.NDArray[np.int32]
    classes: npt.NDArray[np.int32]
    class_requests: Amounts
    class_scored: Amounts
    priorities: Amounts
    outer_priorities: Amounts
    subjects: npt.NDArray[np.int32]
    subject_names: Sequence[WorkloadId]
    subject_numbers: Mapping[WorkloadId, int]
    queues: npt.NDArray[np.int32]
    queue_names: Sequence[str]
    started: npt.NDArray[np.float64]
    flags: npt.NDArray[np.uint8]


def flags_of(charge: Charge) -> int:
    """What is special about a charged pod, as the sum of its Flags."""
    flags = _ASSUMED if charge.state is PlacementState.ASSUMED else 0
    pod = charge.pod
    if pod is None:
        return flags
    flags += _DELETING * pod.deleting + _DISRUPTED * pod.status.disrupted
    own = pod.colocation
    flags += _PROTECTED * (not own.preemptible) + _BELOW_PROD * own.below_prod
    return flags + _MINIMUM_MEMBER * own.minimum_member
