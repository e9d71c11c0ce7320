"""One more than the bounds costs whoever has come the least far its place, the oldest of the peer that has most."""

from __future__ import annotations

import pytest

from kube.connection_limit import ConnectionBounds, ConnectionLimit, ConnectionStage

CLOSING, GREETING, SILENT, IDLE, BUSY = ConnectionStage


@pytest.mark.parametrize(
    ("bounds", "members", "cut"),
    [
        pytest.param((3, 3), [("a1", GREETING), ("a2", BUSY)], [], id="there is room"),
        pytest.param((9, 2), [("a1", GREETING), ("a2", GREETING)], ["a1"], id="the oldest handshake"),
        pytest.param((9, 2), [("b1", GREETING), ("a1", GREETING), ("a2", GREETING)], ["a1"], id="of who has most"),
        pytest.param((9, 1), [("a1", IDLE), ("a2", GREETING), ("a3", BUSY)], ["a2"], id="idle ones are no handshakes"),
        pytest.param((3, 3), [("a1", IDLE), ("a2", SILENT), ("a3", GREETING)], ["a3"], id="full: handshakes first"),
        pytest.param((3, 3), [("a1", IDLE), ("a2", BUSY), ("a3", SILENT)], ["a3"], id="then who never asked"),
        pytest.param((3, 3), [("a1", BUSY), ("a2", IDLE), ("a3", IDLE)], ["a2"], id="then who is idle"),
        pytest.param(
            (3, 3), [("a1", GREETING), ("a2", CLOSING), ("a3", IDLE)], ["a2"], id="first who has had its answer"
        ),
        pytest.param((2, 2), [("b1", BUSY), ("a1", BUSY)], ["b1"], id="then whoever is there"),
    ],
)
def test_who_is_cut(bounds: tuple[int, int], members: list[tuple[str, ConnectionStage]], cut: list[str]) -> None:
    """A member's name begins with its peer."""
    limit: ConnectionLimit[str] = ConnectionLimit(ConnectionBounds(*(99, 99)))
    for now, (name, stage) in enumerate(members):
        limit.enter(name, name[0], now)
        limit.reach(name, stage, now)
    limit.bounds = ConnectionBounds(*bounds)
    assert limit.enter("new", "c", 99) == cut
    assert set(limit) == {name for name, _ in members} - set(cut) | {"new"}


def test_time_begins_again_with_each_stage() -> None:
    limit: ConnectionLimit[str] = ConnectionLimit(ConnectionBounds(9, 9))
    for name in ("x", "y"):
        limit.enter(name, "a", 0)
    limit.reach("x", SILENT, 5)
    assert (limit.since(1), limit.since(6), limit.since(6, SILENT)) == (["y"], ["y", "x"], ["x"])
    assert (limit.at(SILENT), limit.at(IDLE)) == (["x"], [])
    limit.leave("x")
    limit.reach("x", BUSY, 7)
    assert list(limit) == ["y"]
    limit.leave_all(lambda name: name == "y")
    assert len(limit) == 0
