"""Messages between the agent and a pod on the pod's own socket: lines of JSON, one message each.

What a pod says is trusted about that pod alone, and bounded before it is read.
"""

from __future__ import annotations

import math
import re

import msgspec

from model.fault import PeerFault
from model.report import PreemptionNotice

LONGEST_LINE_BYTES = 4096
"""Of either side, its newline included."""
_LONGEST_REASON = 512
_ID = re.compile(r"[0-9A-Za-z._-]{1,128}")
_LARGEST = 2**63 - 1


class CheckpointTold(msgspec.Struct, frozen=True, tag="checkpoint"):
    """A complete checkpoint, as its process tells: times are Unix seconds, `begun` is the moment of the saved state."""

    id: str
    begun: float
    complete: float
    step: int = 0
    size: int = 0


class _NoticeGiven(msgspec.Struct, frozen=True, tag="notice"):
    """`deadline` is Unix time, `grace` the seconds from SIGTERM to SIGKILL after it."""

    deadline: float
    reason: str
    grace: float


class _NoticeWithdrawn(msgspec.Struct, frozen=True, tag="withdrawn"):
    pass


class _CheckpointHeard(msgspec.Struct, frozen=True, tag="ack"):
    id: str


_DECODER = msgspec.json.Decoder(CheckpointTold)


def checkpoint_told(line: bytes, now: float) -> CheckpointTold:
    """What a line says; times ahead of `now` (Unix seconds) count as now. Raises PeerFault."""
    try:
        told = _DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise PeerFault("the pod's line", str(error)[:200], "speak as docs/checkpoints.md says") from None
    if not _ID.fullmatch(told.id):
        raise PeerFault("checkpoint.id", "is no id", "send 1 to 128 letters, digits, dots, dashes and underscores")
    if not (math.isfinite(told.complete) and 0 < told.begun <= told.complete):
        raise PeerFault("checkpoint.begun", "is not a time before complete", "send Unix seconds")
    if not (0 <= told.step <= _LARGEST and 0 <= told.size <= _LARGEST):
        raise PeerFault("checkpoint.step or size", "is out of range", "send whole numbers from 0 to 2^63 - 1")
    return msgspec.structs.replace(told, begun=min(told.begun, now), complete=min(told.complete, now))


def notice_line(notice: PreemptionNotice | None, grace_seconds: float) -> bytes:
    """What a pod is told of its end; None: it stays after all."""
    if notice is None:
        return _line(_NoticeWithdrawn())
    return _line(_NoticeGiven(notice.deadline_seconds, notice.reason[:_LONGEST_REASON], grace_seconds))


def heard_line(told: CheckpointTold) -> bytes:
    """That a checkpoint was heard of."""
    return _line(_CheckpointHeard(told.id))


def _line(message: msgspec.Struct) -> bytes:
    return msgspec.json.encode(message) + b"\n"
