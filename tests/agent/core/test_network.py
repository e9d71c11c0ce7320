"""/proc/net/dev, and whose interface is whose."""

from __future__ import annotations

import pytest

from agent.core.network import HostLink, InterfaceTraffic, bytes_of_pods, interfaces, links_of_pods
from agent.core.observation import NetworkBytes

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
