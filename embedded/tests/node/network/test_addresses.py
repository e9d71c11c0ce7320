"""Each pod has an address of its own from its node's range."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.node.network.addresses import ROUTED, Addresses, node_address, pod_range


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1, "127.65.0.0/16"),
        (31, "127.95.0.0/16"),
        (32, "127.97.0.0/16"),
        (190, "127.255.0.0/16"),
        (191, "127.65.0.0/16"),
    ],
)
def test_pod_range(number: int, expected: str) -> None:
    """Never the range of Services."""
    assert str(pod_range(number)) == expected


def test_routed_pod_range() -> None:
    """Addresses that a real API server takes as endpoints; 32 nodes have ranges of their own."""
    assert str(pod_range(1, routed=True)) == "198.18.0.0/20" and node_address(2, routed=True) == "198.18.16.1"
    ranges = {pod_range(number, routed=True) for number in range(1, 33)}
    assert len(ranges) == 32 and all(each.subnet_of(ROUTED) for each in ranges)
    assert pod_range(33, routed=True) == pod_range(1, routed=True)


def named(pod: Any, uid: str, **more: Any) -> Any:
    return pod(metadata={"uid": uid}, **more)


def test_take_and_release(pod: Any) -> None:
    """Its own, again and again; one given back rests before another pod has it."""
    held = Addresses(pod_range(1))
    first, second = held.take(named(pod, "a")), held.take(named(pod, "b"))
    assert (first, second) == ("127.65.0.2", "127.65.0.3")
    assert held.take(named(pod, "a")) == first
    held.release(named(pod, "a"))
    assert held.take(named(pod, "c")) == "127.65.0.4"


@pytest.mark.parametrize(
    ("before", "expected"),
    [("127.65.7.7", "127.65.7.7"), ("127.66.0.9", "127.65.0.2"), ("", "127.65.0.2"), ("x", "127.65.0.2")],
)
def test_an_earlier_run(pod: Any, before: str, expected: str) -> None:
    """What an earlier run of the node gave a pod stays the pod's, if it is of the node's range."""
    assert Addresses(pod_range(1)).take(pod(status={"podIP": before})) == expected


def test_taken_before(pod: Any) -> None:
    """One that another pod holds is not given twice, whatever a status says; a full range ends at the node's own."""
    held = Addresses(pod_range(1))
    held.take(named(pod, "a"))
    assert held.take(named(pod, "b", status={"podIP": "127.65.0.2"})) == "127.65.0.3"
    assert held.take(named(pod, "c", hostNetwork=True)) == "127.65.0.1"


def test_all_given(pod: Any) -> None:
    """Of a range of eight, five are for pods; then there is the node's own, and a freed one is given again."""
    import ipaddress

    held = Addresses(ipaddress.IPv4Network("127.65.0.0/29"))
    given = [held.take(named(pod, str(number))) for number in range(6)]
    assert given == [*(f"127.65.0.{each}" for each in range(2, 7)), "127.65.0.1"]
    held.release(named(pod, "1"))
    assert held.take(named(pod, "x")) == "127.65.0.3"
