"""Counters of this machine, and pods in real network namespaces."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyroute2 import IPRoute, netns
from pyroute2.netlink.exceptions import NetlinkError

from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import NetworkBytes
from agent.edge.network import NetworkEdge, PodNetworks, interfaces
from agent.edge.podlinks import links_of_pods

HEAD = "Inter-| Receive | Transmit\n face |bytes |bytes\n"


def until(done: Callable[[], bool], edge: NetworkEdge) -> None:
    """Run the edge until a condition holds, 5 s at most."""

    async def scene() -> None:
        task = asyncio.create_task(edge.run())
        for _ in range(500):
            if done():
                break
            await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(scene())


def counters_of_sysfs() -> dict[str, int]:
    files = Path("/sys/class/net").glob("*/statistics/rx_bytes")
    return {file.parent.parent.name: int(file.read_text()) for file in files}


def test_interfaces_of_this_machine() -> None:
    """Sorted, loopback left out; counters lie between two readings of the kernel's own files."""
    before = counters_of_sysfs()
    found = interfaces()
    after = counters_of_sysfs()
    assert [traffic.name for traffic in found] == sorted(traffic.name for traffic in found)
    counted = {traffic.name: traffic.received_bytes for traffic in found}
    lasting = (before.keys() & after.keys()) - {"lo"}
    assert lasting <= counted.keys() and "lo" not in counted
    assert all(before[name] <= counted[name] <= after[name] for name in lasting)


def test_the_edge_keeps_the_newest(tmp_path: Path) -> None:
    """Read at once; a table that cannot be read leaves nothing."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net/dev").write_text(HEAD + "eth0: 5 0 0 0 0 0 0 0 6 0 0 0 0 0 0 0\n")
    edge = NetworkEdge(tmp_path)
    until(lambda: bool(edge.newest), edge)
    assert edge.newest == (InterfaceTraffic("eth0", 5, 6),)
    (tmp_path / "net/dev").unlink()
    until(lambda: not edge.newest, edge)
    assert edge.newest == ()


class FakeLinks:
    """Remembers what was asked; answers what it is told to."""

    def __init__(self) -> None:
        self.asked: list[dict[str, int]] = []
        self.known: dict[str, tuple[str, ...]] = {}
        self.error: Exception | None = None

    def __call__(self, pods: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
        self.asked.append(dict(pods))
        if self.error:
            raise self.error
        return {uid: self.known[uid] for uid in pods if uid in self.known}


def made(pods: dict[str, int], links: FakeLinks) -> PodNetworks:
    traffic = tuple(InterfaceTraffic(f"veth{n}", n, 10 * n) for n in (1, 2))
    return PodNetworks(lambda: pods, lambda: traffic, links)


def test_only_new_pods_are_looked_up() -> None:
    """Once each; again with another process; forgotten when gone."""
    links, pods = FakeLinks(), {"a": 100}
    links.known = {"a": ("veth1",), "b": ("veth2",)}
    edge = made(pods, links)
    assert edge.newest == {}

    async def scene() -> None:
        await edge.refresh()
        await edge.refresh()
        assert edge.newest == {"a": NetworkBytes(10, 1)}
        pods["b"] = 200
        await edge.refresh()
        assert edge.newest == {"a": NetworkBytes(10, 1), "b": NetworkBytes(20, 2)}
        pods["b"] = 201
        del pods["a"]
        await edge.refresh()
        assert edge.newest == {"b": NetworkBytes(20, 2)}

    asyncio.run(scene())
    assert links.asked == [{"a": 100}, {"b": 200}, {"b": 201}]


def test_a_link_may_come_later_and_is_not_awaited_for_ever() -> None:
    """Three look-ups; a host-network pod costs no more than that."""
    links, pods = FakeLinks(), {"a": 1, "host": 2}
    edge = made(pods, links)

    async def scene() -> None:
        await edge.refresh()
        links.known = {"a": ("veth1",)}
        for _ in range(4):
            await edge.refresh()

    asyncio.run(scene())
    assert links.asked == [{"a": 1, "host": 2}, {"a": 1, "host": 2}, {"host": 2}]
    assert set(edge.newest) == {"a"}


def test_netlink_may_be_refused() -> None:
    """No counters, no crash; asked again, since a right may be granted later."""
    links = FakeLinks()
    links.error, links.known = PermissionError(1, "not permitted"), {"a": ("veth1",)}
    edge = made({"a": 1}, links)

    async def scene() -> None:
        await edge.refresh()
        assert edge.newest == {}
        links.error = None
        await edge.refresh()

    asyncio.run(scene())
    assert edge.newest == {"a": NetworkBytes(10, 1)}


INHABITANT = """
import socket, sys
from pyroute2 import IPRoute, netns
name, own, host = sys.argv[1:]
netns.setns(name)
with IPRoute() as route:
    (index,) = route.link_lookup(ifname="eth0")
    route.addr("add", index=index, address=own, prefixlen=30)
    route.link("set", index=index, state="up")
print("ready", flush=True)
for line in sys.stdin:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outgoing:
        outgoing.sendto(b"x" * int(line), (host, 9))
    print("sent", flush=True)
"""


class Namespace:
    """A real network namespace with a link to the host, and a process in it that sends what it is told to."""

    def __init__(self, name: str, index: int) -> None:
        self.name, self.host_side = name, f"sublet{os.getpid()}{index}"
        self.process: subprocess.Popen[str] | None = None
        host, own = f"10.213.{index}.1", f"10.213.{index}.2"
        netns.create(name)
        try:
            with IPRoute() as route:
                route.link("add", ifname=self.host_side, kind="veth", peer={"ifname": "eth0", "net_ns_fd": name})
                (link,) = route.link_lookup(ifname=self.host_side)
                route.addr("add", index=link, address=host, prefixlen=30)
                route.link("set", index=link, state="up")
            command = [sys.executable, "-c", INHABITANT, name, own, host]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._told() == "ready\n"
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send(self, size: int) -> None:
        """One datagram of `size` bytes from inside the namespace to the host."""
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        assert self._told() == "sent\n"

    def _told(self) -> str:
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        with IPRoute() as route:
            for index in route.link_lookup(ifname=self.host_side):
                route.link("del", index=index)
        netns.remove(self.name)


@pytest.fixture
def two() -> Iterator[tuple[Namespace, Namespace]]:
    if os.geteuid() != 0:
        pytest.skip("making network namespaces needs root")
    opened: list[Namespace] = []
    try:
        for number in (1, 2):
            try:
                opened.append(Namespace(f"sublet-test-{os.getpid()}-{number}", number))
            except (OSError, NetlinkError) as error:
                pytest.skip(f"network namespaces are not granted here: {error}")
        yield opened[0], opened[1]
    finally:
        for namespace in opened:
            namespace.close()


def test_real_namespaces(two: tuple[Namespace, Namespace]) -> None:
    """Each pod its own link; a process of the host's network and one that is gone have none."""
    first, second = two
    pods = {"first": first.pid, "second": second.pid, "host": os.getpid(), "gone": 4_194_303}
    assert links_of_pods(pods) == {"first": (first.host_side,), "second": (second.host_side,)}


def test_real_traffic(two: tuple[Namespace, Namespace]) -> None:
    """What the pod sends is counted as sent, with its headers, and only for that pod."""
    first, second = two
    edge = PodNetworks(lambda: {"first": first.pid, "second": second.pid}, interfaces, links_of_pods)
    asyncio.run(edge.refresh())
    before = edge.newest
    first.send(1200)
    after = edge.newest
    assert after["first"].sent_bytes - before["first"].sent_bytes >= 1200 + 28
    assert after["second"].sent_bytes - before["second"].sent_bytes < 1200
    assert after["first"].received_bytes - before["first"].received_bytes < 1200
