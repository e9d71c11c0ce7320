"""Interface counters from /proc/net/dev, and which of them are a pod's; who listens on a port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.observe.observation import NetworkBytes
from agent.core.observe.parse import counter

_FIELDS = 16
_SENT = 8
_LISTENING = b"0A"
"""TCP_LISTEN of the kernel's net/tcp_states.h, as /proc/net/tcp prints it."""
_SOCKET_FIELDS = 10
_NO_NAMESPACE = 1 << 31
"""Namespace ids are signed: from here on the kernel means -1, no id, that is the asker's own or an unlinked one."""


class InterfaceTraffic(msgspec.Struct, frozen=True):
    """Bytes since the interface came up, as the node sees them."""

    name: str
    received_bytes: int
    sent_bytes: int


class HostLink(msgspec.Struct, frozen=True):
    """An interface of the node, and the namespace its other end is in (None: it has none elsewhere)."""

    name: str
    peer_namespace: int | None


def interfaces(text: bytes) -> tuple[InterfaceTraffic, ...]:
    """Every interface of /proc/net/dev but loopback, by name. Raises ValueError saying which line is wrong."""
    found = []
    for line in text.splitlines()[2:]:
        # A name may hold a colon; a number never does.
        name, _, numbers = line.rpartition(b":")
        fields = numbers.split()
        if len(fields) < _FIELDS or not all(field.isdigit() for field in fields):
            raise ValueError(f"{line[:60].decode(errors='replace')!r} is not a line of /proc/net/dev")
        if name.strip() != b"lo":
            found.append(
                InterfaceTraffic(name.strip().decode(errors="replace"), counter(fields[0]), counter(fields[_SENT]))
            )
    return tuple(sorted(found, key=lambda traffic: traffic.name))


def listening_users(table: bytes, port: int) -> frozenset[int]:
    """Users whose processes listen on a port, from /proc/net/tcp or tcp6, which name them without any right.

    Raises ValueError saying which line is wrong.
    """
    found = set()
    for line in table.splitlines()[1:]:
        # Number, local address, remote address, state, queues, timer, retransmissions, user.
        fields = line.split(maxsplit=_SOCKET_FIELDS - 1)
        try:
            state, user, at = fields[3], counter(fields[7]), int(fields[1].rpartition(b":")[2], 16)
        except (IndexError, ValueError):
            raise ValueError(f"{line[:60].decode(errors='replace')!r} is not a line of /proc/net/tcp") from None
        if state == _LISTENING and at == port:
            found.add(user)
    return frozenset(found)


def links_of_pods(namespaces: Mapping[str, int | None], links: Iterable[HostLink]) -> dict[str, tuple[str, ...]]:
    """uid → its host-side interfaces. `namespaces` is each pod's id; pods without one are left out."""
    by_namespace: dict[int, list[str]] = {}
    for link in links:
        if link.peer_namespace is not None and 0 <= link.peer_namespace < _NO_NAMESPACE:
            by_namespace.setdefault(link.peer_namespace, []).append(link.name)
    return {
        uid: tuple(sorted(by_namespace[namespace]))
        for uid, namespace in namespaces.items()
        if namespace is not None and namespace in by_namespace
    }


def bytes_of_pods(names: Mapping[str, tuple[str, ...]], traffic: Iterable[InterfaceTraffic]) -> dict[str, NetworkBytes]:
    """Counters as the pod sees them: what the node receives on the host side the pod has sent.

    A pod of whose interfaces one is gone is left out: half a sum would look like a reset.
    """
    counters = {entry.name: entry for entry in traffic}
    return {
        uid: NetworkBytes(
            received_bytes=sum(counters[name].sent_bytes for name in own),
            sent_bytes=sum(counters[name].received_bytes for name in own),
        )
        for uid, own in names.items()
        if all(name in counters for name in own)
    }
