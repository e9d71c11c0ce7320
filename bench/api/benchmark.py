"""bench/api: the embedded API server's speed, each figure beside a baseline of the same run.

Server, baseline and receivers of watches are processes of their own; this one is the client that creates and lists.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from bench.api.child import CommandedProcess
from bench.api.client import creates_per_second, fetch_seconds, request
from bench.api.pods import MIDDLE_BYTES, NODES, SMALL_BYTES, node_of
from bench.machine import Machine, this_machine
from embedded.own_files import write_private
from local.certificates import LocalAuthority

SIZES, CONNECTIONS = (SMALL_BYTES, MIDDLE_BYTES), (1, 16)
ECHO, MEMORY, STATE = "echo", "memory", "state-dir"
EVERYONE, PLAIN, BY_NODE, PLAIN_BY_NODE = "10 watchers", "10 sockets", "100 watchers by node", "100 sockets in turn"
_WATCHERS = 10
_SPARE_BYTES = 16 << 20


class ApiEffort(msgspec.Struct, frozen=True):
    """How much of everything; `seconds` is one stretch of creates with one server."""

    rounds: int = 5
    seconds: float = 0.5
    listed_pods: int = 5_000
    held_pods: int = 10_000
    events: int = 10_000
    watch_rounds: int = 3


QUICK = ApiEffort(rounds=2, seconds=0.2, listed_pods=500, held_pods=1_000, events=1_000, watch_rounds=1)


class Creates(msgspec.Struct, frozen=True):
    """Pods of one size over so many connections: requests a second of each server, round by round."""

    size_bytes: int
    connections: int
    per_second: dict[str, tuple[float, ...]]


class Lists(msgspec.Struct, frozen=True):
    """Seconds of each kind of list, round by round: in the server's process, and over TLS of it and the baseline."""

    pods: int
    pod_bytes: int
    inside: dict[str, tuple[float, ...]]
    over_tls: tuple[float, ...]
    plain_tls: tuple[float, ...]


class Publication(msgspec.Struct, frozen=True):
    """One publication: `lost` counts events that did not come once, whole and in order."""

    who: str
    deliveries: int
    seconds: float | None
    lost: int


class Memory(msgspec.Struct, frozen=True):
    """A process that holds pods: seconds of full garbage collections, and what it takes."""

    pauses: tuple[float, ...]
    rss_mib: float


class Api(msgspec.Struct, frozen=True):
    """Everything that was measured."""

    machine: Machine
    effort: ApiEffort
    creates: tuple[Creates, ...]
    lists: Lists
    watches: tuple[Publication, ...]
    held: Memory
    held_empty: Memory
    held_as_dictionaries: Memory


def measure_api(effort: ApiEffort) -> Api:
    """Raises a Fault where a process does not come up or refuses something."""
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as name:
        keys = Path(name)
        certificate, key = LocalAuthority("sublet bench").issue("bench")
        write_private(keys / "tls.crt", certificate)
        write_private(keys / "tls.key", key)
        return _Bench(keys, effort).measured(machine)


class _Bench:
    def __init__(self, keys: Path, effort: ApiEffort) -> None:
        self._keys = keys
        self._effort = effort

    def measured(self, machine: Machine) -> Api:
        creates = self._creates()
        with ExitStack() as stack:
            server, baseline = self._server(stack), self._baseline(stack)
            lists = self._lists(server, baseline)
            watches = self._watches(server, baseline, lists.pod_bytes)
        return Api(machine, self._effort, creates, lists, watches, *self._memory())

    def _server(self, stack: ExitStack, *arguments: str) -> CommandedProcess:
        return stack.enter_context(CommandedProcess("bench.api.server", "--keys", str(self._keys), *arguments))

    def _baseline(self, stack: ExitStack) -> CommandedProcess:
        return stack.enter_context(CommandedProcess("bench.api.baseline", "--keys", str(self._keys)))

    def _creates(self) -> tuple[Creates, ...]:
        """The servers take turns within a round, so that all have the machine as it is then."""
        with ExitStack() as stack:
            state = ("--state-dir", str(self._keys / "state"))
            servers = {ECHO: self._baseline(stack), MEMORY: self._server(stack), STATE: self._server(stack, *state)}
            ports = {name: server.ask("where")["port"] for name, server in servers.items()}
            numbers = count()
            for port in ports.values():  # the first objects bring their schemas in
                creates_per_second(port, MIDDLE_BYTES, 1, self._effort.seconds / 5, numbers)
            return tuple(self._create(ports, size, at_once, numbers) for size in SIZES for at_once in CONNECTIONS)

    def _create(self, ports: dict[str, int], size: int, connections: int, numbers: Iterator[int]) -> Creates:
        _tell(f"creating pods of {size} bytes over {connections} connections")
        found: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(self._effort.rounds):
            for name, port in ports.items():
                found[name].append(creates_per_second(port, size, connections, self._effort.seconds, numbers))
        return Creates(size, connections, {name: tuple(each) for name, each in found.items()})

    def _lists(self, server: CommandedProcess, baseline: CommandedProcess) -> Lists:
        effort = self._effort
        _tell(f"listing {effort.listed_pods} pods")
        size = server.ask("fill", count=effort.listed_pods)["bytes"]
        baseline.ask("fill", count=effort.listed_pods, bytes=size)
        inside = server.ask("lists", rounds=effort.rounds)
        buffer = bytearray(effort.listed_pods * (size + 1) + _SPARE_BYTES)
        ours, plain = server.ask("where")["port"], baseline.ask("where")["port"]
        pairs = [
            (fetch_seconds(ours, "/api/v1/pods", buffer), fetch_seconds(plain, "/list", buffer))
            for _ in range(effort.rounds)
        ]
        over_tls, plain_tls = zip(*pairs, strict=True)
        return Lists(
            effort.listed_pods, size, {name: tuple(each) for name, each in inside.items()}, over_tls, plain_tls
        )

    def _watches(self, server: CommandedProcess, baseline: CommandedProcess, size: int) -> tuple[Publication, ...]:
        ours, plain = server.ask("where")["port"], baseline.ask("where")["streams"]
        every, each = [""] * _WATCHERS, [node_of(number) for number in range(NODES)]
        found = []
        for number in range(self._effort.watch_rounds):
            _tell(f"watching, round {number + 1}")
            found += [
                self._watch(EVERYONE, server, ours, every),
                self._watch(PLAIN, baseline, plain, every, bytes=size),
                self._watch(BY_NODE, server, ours, each),
                self._watch(PLAIN_BY_NODE, baseline, plain, each, bytes=size),
            ]
        return tuple(found)

    def _watch(self, who: str, source: CommandedProcess, port: int, nodes: list[str], **options: Any) -> Publication:
        """One watcher for each of `nodes`, of that node's pods or (empty) of all."""
        events, revision = self._effort.events, source.ask("where")["revision"]
        expected = events // NODES if nodes[0] else events
        with CommandedProcess("bench.api.receiver") as receivers:
            requests = [_watch_request(revision, node) for node in nodes]
            receivers.ask("open", port=port, requests=requests, expected=expected)
            receivers.tell("take")
            sent = source.ask("publish", events=events, pods=self._effort.listed_pods, **options)
            taken = receivers.answer()
        deliveries = expected * len(nodes)
        seconds = None if taken["ended"] is None else taken["ended"] - sent["begun"]
        return Publication(who, deliveries, seconds, lost([sent["digests"][node] for node in nodes], taken, deliveries))

    def _memory(self) -> tuple[Memory, Memory, Memory]:
        effort = self._effort
        _tell(f"holding {effort.held_pods} pods")
        with ExitStack() as stack:
            server, other = self._server(stack), self._baseline(stack)
            empty = server.ask("memory", rounds=effort.rounds)
            server.ask("fill", count=effort.held_pods)
            held = server.ask("memory", rounds=effort.rounds)
            decoded = other.ask("dictionaries", count=effort.held_pods, rounds=effort.rounds)
        return _memory_of(held), _memory_of(empty), _memory_of(decoded)


def _watch_request(revision: int, node: str) -> str:
    selector = f"&fieldSelector=spec.nodeName={node}" if node else ""
    return request("GET", f"/api/v1/pods?watch=true&resourceVersion={revision}{selector}").decode()


def lost(wanted: Sequence[str], taken: Mapping[str, Any], deliveries: int) -> int:
    """Events missing, broken or too many; at least one for each receiver that did not get exactly what was sent."""
    received, cut_short = int(taken["received"]), int(taken["cut_short"])
    differing = sum(str(digest) != each for digest, each in zip(taken["digests"], wanted, strict=True))
    return max(abs(deliveries - received), cut_short, differing)


def _memory_of(found: dict[str, Any]) -> Memory:
    return Memory(tuple(found["pauses"]), found["rss_bytes"] / (1 << 20))


def _tell(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)
