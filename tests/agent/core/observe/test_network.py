"""/proc/net/dev, and whose interface is whose."""

from __future__ import annotations

import pytest

from agent.core.observe.network import (
    HostLink,
    InterfaceTraffic,
    bytes_of_pods,
    interfaces,
    links_of_pods,
    listening_users,
)
from agent.core.observe.observation import NetworkBytes

HEAD = b"""Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
"""
LINE = b"%b: %d 1 0 0 0 0 0 0 %d 2 0 0 0 0 0 0\n"


def test_interfaces() -> None:
    """Received is the first number, sent the ninth; by name, loopback left out, colons in names and no blanks allowed."""
    text = HEAD + LINE % (b"    lo", 1, 1) + LINE % (b"  eth0", 10, 20) + LINE % (b"cali:1", 30, (1 << 63) - 1)
    text += b"ab:7 1 0 0 0 0 0 0 8 2 0 0 0 0 0 0\n"
    assert interfaces(text) == (
        InterfaceTraffic("ab", 7, 8),
        InterfaceTraffic("cali:1", 30, (1 << 63) - 1),
        InterfaceTraffic("eth0", 10, 20),
    )
    assert interfaces(HEAD) == ()


@pytest.mark.parametrize(
    "line", [b"eth0: 1 2 3\n", b"eth0 1 0 0 0 0 0 0 0 0 2 0 0 0 0 0 0\n", b"x: a" + b" 1" * 15, b"\n"]
)
def test_a_line_that_is_none(line: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"is not a line of /proc/net/dev"):
        interfaces(HEAD + line)


def test_links_of_pods() -> None:
    """By namespace id; -1 (seen unsigned on one side, signed on the other) and a vanished process match nothing."""
    links = [
        HostLink("eth0", None),
        HostLink("gre0", -1),
        HostLink("old0", 4294967295),
        HostLink("veth-b", 3),
        HostLink("veth-a", 3),
        HostLink("veth-c", 0),
    ]
    namespaces = {"two": 3, "first": 0, "host": 4294967295, "gone": None, "odd": 8, "negative": -1}
    assert links_of_pods(namespaces, links) == {"two": ("veth-a", "veth-b"), "first": ("veth-c",)}


def test_bytes_are_the_pods_own() -> None:
    """The node receives what the pod sends; interfaces add up, and a pod that lost one has no number."""
    traffic = (InterfaceTraffic("a", 10, 200), InterfaceTraffic("b", 1, 2))
    names = {"one": ("a",), "both": ("a", "b"), "half": ("a", "gone")}
    assert bytes_of_pods(names, traffic) == {
        "one": NetworkBytes(received_bytes=200, sent_bytes=10),
        "both": NetworkBytes(received_bytes=202, sent_bytes=11),
    }


def sockets(*rows: tuple[str, str, int]) -> bytes:
    """Local address, state and user of each."""
    lines = [
        f"   {n}: {at} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {user}        0 1779046 1 0 100 0 0 10 0"
        for n, (at, state, user) in enumerate(rows)
    ]
    return "\n".join(["  sl  local_address rem_address   st", *lines]).encode()


def test_who_listens_on_a_port() -> None:
    """On any address of either family; a connection from that port, or one that was closed, is nobody who listens."""
    port = f"{10316:04X}"
    table = sockets(
        (f"0100007F:{port}", "0A", 1000),
        (f"0000000000000000FFFF00000100007F:{port}", "0A", 1001),
        (f"0100007F:{port}", "01", 1002),
        (f"0100007F:{port}", "06", 0),
        ("0100007F:284D", "0A", 1003),
    )
    assert listening_users(table, 10316) == {1000, 1001}
    assert listening_users(table.splitlines()[0], 10316) == frozenset()


@pytest.mark.parametrize(
    "line", [b"0: x", b"0: 1:zz 0:0 0A 0 0 0 1", b"0: 1:1 0:0 0A 0 0 0 -1", b"0: 1:1 0:0 0A 0:0 0:0 0"]
)
def test_a_line_of_sockets_that_is_none(line: bytes) -> None:
    with pytest.raises(ValueError, match="is not a line of /proc/net/tcp"):
        listening_users(b"head\n" + line, 10316)
