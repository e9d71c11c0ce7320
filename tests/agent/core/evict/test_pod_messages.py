"""Lines between the agent and a pod: what is taken, what is refused, and how large they become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.core.evict.pod_messages import LONGEST_LINE_BYTES, CheckpointTold, checkpoint_told, heard_line, notice_line
from model.fault import PeerFault
from model.report import PreemptionNotice

NOW = 1000.0


def line(**fields: Any) -> bytes:
    told = {"type": "checkpoint", "id": "1-a", "step": 3, "begun": 5.0, "complete": 6.0, "size": 9, **fields}
    return json.dumps({name: value for name, value in told.items() if value is not None}).encode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (line(), CheckpointTold("1-a", 5.0, 6.0, 3, 9)),
        (line(step=None, size=None), CheckpointTold("1-a", 5.0, 6.0)),
        (line(begun=5, complete=5), CheckpointTold("1-a", 5.0, 5.0, 3, 9)),
        (line(complete=NOW + 9), CheckpointTold("1-a", 5.0, NOW, 3, 9)),
        (line(begun=NOW + 1, complete=NOW + 9), CheckpointTold("1-a", NOW, NOW, 3, 9)),
        (line(pod="another", uid="another"), CheckpointTold("1-a", 5.0, 6.0, 3, 9)),
    ],
    ids=["whole", "without what may be left out", "at once", "complete later", "in the future", "of another pod"],
)
def test_a_checkpoint(text: bytes, told: CheckpointTold) -> None:
    """What a line says beside it, such as whose it is, is nothing to anybody."""
    assert checkpoint_told(text, NOW) == told


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\xff\xfe", b"1", b"[]", b"null", b"[" * 4000, b'{"a":' * 800, line(type="notice"),
        line(id=None), line(id=""), line(id="a/b"), line(id="x" * 129), line(id=5), line(begun=None),
        line(begun=0), line(begun=-1), line(begun=7.0), line(begun="5"), line(complete=None), line(step=-1),
        line(step=2**63), line(step=1.5), line(size=-1), line(size=2**70),
        b'{"type":"checkpoint","id":"a","begun":1,"complete":1e999}',
        b'{"type":"checkpoint","id":"a","begun":1,"complete":NaN}',
    ],
)  # fmt: skip
def test_what_is_no_checkpoint_is_refused(text: bytes) -> None:
    with pytest.raises(PeerFault):
        checkpoint_told(text, NOW)


def test_a_pod_is_told() -> None:
    """Each on a line of its own that ends."""
    notice = PreemptionNotice("uid", 12.5, "a gang\nneeds the node")
    given = json.loads(notice_line(notice, 30.0))
    assert given == {"type": "notice", "deadline": 12.5, "reason": "a gang\nneeds the node", "grace": 30.0}
    assert json.loads(notice_line(None, 30.0)) == {"type": "withdrawn"}
    assert json.loads(heard_line(CheckpointTold("1-a", 1.0, 2.0))) == {"type": "ack", "id": "1-a"}
    for text in (notice_line(notice, 30.0), notice_line(None, 30.0)):
        assert text.endswith(b"\n") and text.count(b"\n") == 1


def test_a_reason_without_end_is_cut() -> None:
    assert len(notice_line(PreemptionNotice("uid", 1.0, "\x00" * 100_000), 30.0)) <= LONGEST_LINE_BYTES
