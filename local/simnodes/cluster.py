"""All simulated nodes and their pods: what is observed goes in, time passes, writes come out. No I/O, no clock.

Every time is Unix seconds and a parameter, so that a test moves it as it likes:

    cluster = SimulatedCluster(simulation, load)
    cluster.begin(now)
    cluster.observe_pod(change, now); cluster.advance(now)
    for write in cluster.take(): …
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

import embedded.resources
from agent.core.lend.offer import Published
from embedded.node.objects.pod import NodeObject, PodObject
from embedded.node.pods.admission import Rejection, judge
from kube.informer import Change, ChangeKind
from local.simnodes import lending, lifecycle, requests
from local.simnodes.lifecycle import PodStage
from local.simnodes.pods import SimulatedPod, taken_in
from local.simnodes.requests import QueuedWrite
from local.simnodes.settings import Simulation
from local.simnodes.usage import NodeUse, OnlineLoad, Worker, node_use
from model.node import Node
from model.pod.pod import Pod
from model.report import Usage
from model.resources import ResourceVector, parse_resources

_FIRST_LEASE_SECONDS, _LEASES_SPREAD_SECONDS = 5.0, 25.0
_GOLDEN = 0.618_033_988_75


_Telling = Callable[[Simulation, int, dict[str, Any]], QueuedWrite]


class SimulatedNode(msgspec.Struct):
    """`seen` is what its Node object says; `looked`, `look_at`, `beat_at` are Unix seconds."""

    name: str
    index: int
    pods: dict[str, SimulatedPod]
    seen: NodeObject | None = None
    published: Published | None = None
    told_at: float = 0.0
    looked: float = 0.0
    look_at: float = 0.0
    reported: float = 0.0
    beat_at: float = 0.0


class SimulatedCluster:
    """`port` is where statistics are asked for, 0 for nowhere."""

    def __init__(self, simulation: Simulation, load: OnlineLoad, port: int = 0) -> None:
        self._simulation = simulation
        self._load = load
        self._port = port
        names = map(simulation.name, range(simulation.count))
        self._nodes = {name: SimulatedNode(name, index, {}) for index, name in enumerate(names)}
        self._own = parse_resources(simulation.amounts, "node")
        self._on: dict[str, SimulatedNode] = {}
        self._timers: list[tuple[float, int, str, str]] = []
        self._counter = itertools.count()
        self._writes: dict[str, QueuedWrite] = {}
        self._began = 0.0

    def begin(self, now: float) -> None:
        """Register every node; what was observed before stays. Looks and leases are spread over their intervals."""
        self._began, pace = now, self._simulation.pace
        for node in self._nodes.values():
            spread = node.index * _GOLDEN % 1.0
            node.looked = now
            found = self._offer(node, self.use(node.name, now), now)
            self._tell(node, found, now, requests.registration)
            self._schedule_look(node, now + pace.rest + spread * self._interval)
            node.beat_at = now + _FIRST_LEASE_SECONDS + spread * _LEASES_SPREAD_SECONDS
            self._timer(node.beat_at, "beat", node.name)

    def observe_node(self, change: Change[NodeObject]) -> None:
        node = self._nodes.get(change.object.metadata.name)
        if node:
            node.seen = None if change.kind is ChangeKind.DELETED else change.object

    def observe_pod(self, change: Change[PodObject], now: float) -> None:
        """Pods of other nodes may come too."""
        seen = change.object
        node = self._on.get(seen.uid)
        if node is None:
            node = self._nodes.get(seen.spec.node_name)
            if node and change.kind is not ChangeKind.DELETED and not seen.terminal:
                self._take_in(node, seen, now)
        elif change.kind is ChangeKind.DELETED:
            del self._on[seen.uid]
            del node.pods[seen.uid]
            self._touch(node, now)
        else:
            held = node.pods[seen.uid]
            held.object = seen
            if seen.deleting:
                self._stop(held, now)

    def advance(self, now: float) -> None:
        """Everything that was due until `now`, in its order."""
        while self._timers and self._timers[0][0] <= now:
            at, _, kind, key = heapq.heappop(self._timers)
            if kind == "pod":
                self._advance_pod(key, at, now)
            elif kind == "look" and self._nodes[key].look_at == at:
                self._look(self._nodes[key], now)
            elif kind == "beat" and self._nodes[key].beat_at == at:
                self._beat(self._nodes[key], now)

    @property
    def next_at(self) -> float | None:
        return self._timers[0][0] if self._timers else None

    def take(self) -> list[QueuedWrite]:
        """What is to be written since the last call, the newest of each key."""
        taken, self._writes = list(self._writes.values()), {}
        return taken

    def use(self, name: str, now: float) -> NodeUse:
        """What node `name` uses. Raises KeyError for one that is not simulated."""
        node, machine = self._nodes[name], self._simulation.machine
        seconds = (now - self._began) * self._simulation.pace.factor
        running = (
            Worker(each.pod, each.plan.share) for each in node.pods.values() if each.life.stage is PodStage.RUNNING
        )
        return node_use(Usage(machine.cpu_millis, machine.memory_bytes), self._load.at(node.index, seconds), running)

    def pods_of(self, name: str) -> Iterator[SimulatedPod]:
        """Raises KeyError for a node that is not simulated."""
        yield from self._nodes[name].pods.values()

    @property
    def _interval(self) -> float:
        """Of looks; when time passes faster they follow the model closer."""
        pace = self._simulation.pace
        return max(pace.report / pace.factor, pace.rest)

    # -- pods --------------------------------------------------------------------------------------------------

    def _take_in(self, node: SimulatedNode, seen: PodObject, now: float) -> None:
        held = taken_in(seen, lambda pod: self._refusal(node, pod), self._simulation.pace, now)
        node.pods[seen.uid], self._on[seen.uid] = held, node
        if held.life.stage is PodStage.RUNNING:
            self._schedule_pod(held)
        else:
            self._show(node, held, now)
        if seen.deleting:
            self._stop(held, now)

    def _refusal(self, node: SimulatedNode, pod: Pod) -> Rejection | None:
        held = [_amounts(each.pod.spec.requests) for each in node.pods.values() if each.life.holds_resources]
        return judge(
            _amounts(pod.spec.requests),
            held,
            _amounts(self._allocatable(node)),
            node_selector=pod.spec.node_selector,
            node_labels=self._labels(node),
        )

    def _stop(self, held: SimulatedPod, now: float) -> None:
        held.becomes(lifecycle.deleted(held.life, held.plan, held.object.grace_seconds, now))
        self._schedule_pod(held)

    def _advance_pod(self, uid: str, at: float, now: float) -> None:
        node = self._on.get(uid)
        held = node.pods.get(uid) if node else None
        if node is None or held is None or held.life.next_at != at:
            return
        held.becomes(lifecycle.advanced(held.life, held.plan, now))
        self._show(node, held, now)

    def _show(self, node: SimulatedNode, held: SimulatedPod, now: float) -> None:
        """The pod's new stage in its status, in the node's use, and when it changes again."""
        status = held.status(now)
        gone = held.life.stage is PodStage.GONE
        self._write(requests.pod_end(held.object, status) if gone else requests.pod_status(held.object, status))
        self._schedule_pod(held)
        self._touch(node, now)

    def _schedule_pod(self, held: SimulatedPod) -> None:
        if held.life.next_at is not None:
            self._timer(held.life.next_at, "pod", held.object.uid)

    # -- nodes -------------------------------------------------------------------------------------------------

    def _look(self, node: SimulatedNode, now: float) -> None:
        """Measure, lend, and report as often as that is due."""
        use = self.use(node.name, now)
        node.looked = now
        found = self._offer(node, use, now)
        if found.due or now - node.told_at >= self._simulation.pace.heartbeat:
            self._tell(node, found, now, requests.changed_status)
        if node.seen and now - node.reported >= self._interval:
            node.reported = now
            metric = lending.measured(use, (each.pod for each in node.pods.values()), now)
            self._write(requests.metric(node.name, node.seen.metadata.uid, metric, now))
        self._schedule_look(node, max(node.reported + self._interval, now + self._simulation.pace.rest))

    def _offer(self, node: SimulatedNode, use: NodeUse, now: float) -> lending.SimulatedOffer:
        pods = tuple(each.pod for each in node.pods.values())
        shown = Node(node.name, self._own, self._allocatable(node), self._labels(node))
        return lending.offer(shown, pods, lending.measured(use, pods, now), node.published, now)

    def _tell(self, node: SimulatedNode, found: lending.SimulatedOffer, now: float, how: _Telling) -> None:
        node.published, node.told_at = found.published, now
        status = requests.node_status(self._simulation, self._port, found.amounts, now, self._began)
        self._write(how(self._simulation, node.index, status))

    def _beat(self, node: SimulatedNode, now: float) -> None:
        self._write(requests.lease(node.name, now, self._simulation.pace.lease))
        node.beat_at = now + self._simulation.pace.lease / 3
        self._timer(node.beat_at, "beat", node.name)

    def _touch(self, node: SimulatedNode, now: float) -> None:
        """Look soon: what runs here has changed."""
        at = max(now + 1.0, node.looked + self._simulation.pace.rest)
        if node.looked and at < node.look_at:
            self._schedule_look(node, at)

    def _schedule_look(self, node: SimulatedNode, at: float) -> None:
        node.look_at = at
        self._timer(at, "look", node.name)

    def _allocatable(self, node: SimulatedNode) -> ResourceVector:
        """What the Node says, or is being told at this moment."""
        seen = node.seen.status.allocatable if node.seen else None
        found = parse_resources(seen or {}, "node allocatable").amounts
        offered = node.published.amounts if node.published else {}
        return ResourceVector({**self._own.amounts, **found, **offered})

    def _labels(self, node: SimulatedNode) -> dict[str, str]:
        seen = node.seen.metadata.labels if node.seen else None
        return seen or {"kubernetes.io/hostname": node.name, **self._simulation.labels_of(node.index)}

    # -- timers and writes -------------------------------------------------------------------------------------

    def _timer(self, at: float, kind: str, key: str) -> None:
        heapq.heappush(self._timers, (at, next(self._counter), kind, key))

    def _write(self, write: QueuedWrite) -> None:
        self._writes[write.key] = write


def _amounts(vector: ResourceVector) -> embedded.resources.ResourceVector:
    return embedded.resources.ResourceVector(vector.amounts)
