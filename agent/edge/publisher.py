"""Writing to the API server: the offer, condition and annotations of the node, and its NodeMetric.

What is offered is decided in the tick. This works from the newest tick in its own tasks, with back-off, so that a slow
API server never delays a tick. Only our own keys are patched; nothing else of the node is touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from agent.core.lend.offer import BLIND_SECONDS, Published, amounts_of, due_for_node
from agent.core.lend.reclaimable import NodeLending
from agent.core.observe.node_metric import reported_metric
from agent.core.observe.usage import statistics
from agent.ports import TickResult
from agent.report.node_patches import GAVE_UP, NodePatches, Superseded, WatchedNode
from agent.settings import AgentSettings
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.koordinator import labels, nodemetric
from model.condition import ConditionStatus, ConditionType
from model.decision import Decision
from model.explain import sentence
from model.fault import KubernetesFault
from model.reason import Reason, words

log = structlog.get_logger()

_FIRST_DELAY_SECONDS = 0.5
_LONGEST_NODE_DELAY_SECONDS = 2.0
_LONGEST_DELAY_SECONDS = 60.0
_LONGEST_REST_SECONDS = 5.0
_LONGEST_MESSAGE = 16_384
"""Characters, as deploy/daemonset/policy.yaml admits them."""
_MADE_BY_THE_LEADER = "the leading scheduler makes it, where NodeMetric is defined"
_PATIENCE_TICKS = 2
"""For so long a status patch is waited for."""
_UNKNOWN = WatchedNode()
_NODE_METRICS = "slo.koordinator.sh/v1alpha1/nodemetrics"

Ready = tuple[str, str, str]
"""Status, reason and message of the condition."""
_NEVER_MEASURED: Ready = (ConditionStatus.FALSE, Reason.NODE_METRICS_MISSING.value, words(Reason.NODE_METRICS_MISSING))


class NodePublisher:
    """A sink of the tick; `run` writes node status and NodeMetric, apart so that neither waits for the other.

    `watched` is the Node as it is, whose condition a predecessor may have left.
    """

    def __init__(
        self,
        client: KubeClient,
        node_name: str,
        settings: AgentSettings,
        watched: WatchedNode = _UNKNOWN,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._name = node_name
        self._settings = settings
        self._watched_condition = watched.condition
        self._node = NodePatches(client, node_name, watched.version, settings.tick_seconds * _PATIENCE_TICKS)
        self._monotonic = monotonic
        self._newest: TickResult | None = None
        self._taken = monotonic()
        self._fresh = asyncio.Event()
        self._published: Published | None = None
        self._annotations_due = False
        self._condition: Ready = ("", "", "")
        self._since = ""
        self._condition_at = -math.inf
        self._beat = 0
        self._given_up: Reason | None = None
        self._writing = asyncio.Lock()
        self.failures = 0

    def take(self, result: TickResult) -> None:
        self._newest, self._taken = result, self._monotonic()
        self._overtake(result)
        self._fresh.set()

    @property
    def published(self) -> tuple[Decision, ...]:
        """What the node's status says now, and why; empty before the first patch."""
        return self._published.decisions if self._published else ()

    @property
    def acknowledged(self) -> Mapping[str, int]:
        """The amounts that the API server took last, by resource."""
        return self._published.amounts if self._published else {}

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_node_for_ever())
            tasks.create_task(self._publish_metric_for_ever())

    async def withdraw(self, reason: Reason) -> None:
        """Offer nothing from here on, for that reason, whatever ticks still say; only what running pods hold stays.

        A patch under way that offers more is given up. Until the running pods are known nothing is told. Raises
        KubernetesFault.
        """
        self._given_up = reason
        told = False
        while not told and self._newest is not None and self._newest.facts.pods is not None:
            self._overtake(self._newest)
            with contextlib.suppress(Superseded):
                await self._publish_node(self._newest)
                told = True

    async def _publish_node_for_ever(self) -> None:
        delay = _FIRST_DELAY_SECONDS
        while True:
            result = await self._next()
            try:
                if result is None:
                    await self._patch({}, {}, _NEVER_MEASURED, time.time())
                else:
                    await self._publish_node(result)
                    await self._publish_annotations(result)
                delay = _FIRST_DELAY_SECONDS
            except Superseded:
                self._fresh.set()
            except KubernetesFault as fault:
                delay = await self._rest(fault, delay, self._longest_delay(fault, result))

    async def _next(self) -> TickResult | None:
        """The next tick. Without one for too long, the last that there was, withdrawn; None before the first."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BLIND_SECONDS):
                await self._fresh.wait()
        self._fresh.clear()
        silent_seconds = self._monotonic() - self._taken
        if self._newest is None or silent_seconds < BLIND_SECONDS:
            return self._newest
        return self._newest.withdrawn(Reason.NODE_METRICS_STALE, silent_seconds)

    def _longest_delay(self, fault: KubernetesFault, result: TickResult | None) -> float:
        """A Node that was deleted was told nothing, and need not be asked for twice a second."""
        if fault.status != 404 or (result is not None and result.facts.node is not None):
            return _LONGEST_NODE_DELAY_SECONDS
        self._published, self._condition = None, ("", "", "")
        return _LONGEST_DELAY_SECONDS

    async def _publish_metric_for_ever(self) -> None:
        delay = _FIRST_DELAY_SECONDS
        while True:
            result = self._newest
            if result is None or result.usage is None:
                await asyncio.sleep(_FIRST_DELAY_SECONDS)
                continue
            try:
                await self._publish_metric(result)
                delay = _FIRST_DELAY_SECONDS
                await self._rest_until_report()
            except KubernetesFault as fault:
                longest = _LONGEST_REST_SECONDS if fault.status == 404 else _LONGEST_DELAY_SECONDS
                delay = await self._rest(fault, delay, longest)

    async def _rest_until_report(self) -> None:
        """The interval may be set again meanwhile."""
        loop = asyncio.get_running_loop()
        written = loop.time()
        while self._newest is not None:
            left = written + self._newest.facts.settings.colocation.report_seconds - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(left, _LONGEST_REST_SECONDS))

    async def _rest(self, fault: KubernetesFault, delay: float, longest: float) -> float:
        self.failures += 1
        waits = 0.0 if fault.reason == GAVE_UP else delay
        log.warning("not published", error=str(fault), retry_seconds=waits)
        await asyncio.sleep(waits)
        return min(delay * 2, longest)

    async def _publish_node(self, result: TickResult) -> None:
        async with self._writing:
            await self._write_node(self._as_told(result))

    def _as_told(self, result: TickResult) -> TickResult:
        return result if self._given_up is None else result.withdrawn(self._given_up)

    def _overtake(self, result: TickResult) -> None:
        """A patch under way is not waited for where it offers more than this tick."""
        if not self._node.under_way:
            return
        offer = self._as_told(result).offered
        if offer.may_publish and offer.decisions is not None:
            self._node.decided(offer.amounts)

    async def _write_node(self, result: TickResult) -> None:
        now = result.observation.monotonic_seconds
        if not result.offered.may_publish:
            return
        offer = self._offer_if_due(result, now)
        ready = result.ready
        fresh = ready == self._condition and now - self._condition_at < self._settings.heartbeat_seconds
        # A patch that changes nothing leaves the Node's version as it is, and would stop none that still hangs.
        is_told = fresh and not self._node.uncertain
        if offer is None and is_told:
            return
        await self._patch_status(result, offer, None if is_told else ready)
        if offer is not None:
            self._log_changes(offer)
            self._published, self._annotations_due = Published(offer, now), True
        if not is_told:
            self._condition_at = now

    def _offer_if_due(self, result: TickResult, now: float) -> tuple[Decision, ...] | None:
        """None where the Node has it already, and where nothing could be decided."""
        offer, strategy = result.offered, result.facts.settings.colocation
        if offer.decisions is None:
            return None
        if due_for_node(self._published, offer.amounts, offer.on_node, strategy, now):
            return offer.decisions
        return offer.without_growth if self._node.uncertain else None

    async def _patch_status(self, result: TickResult, offer: tuple[Decision, ...] | None, ready: Ready | None) -> None:
        """None is what needs no telling."""
        told = {} if offer is None else _told(result, offer)
        await self._patch(told, amounts_of(offer or ()), ready, result.observation.at_seconds)

    async def _patch(
        self, told: dict[str, Any], amounts: Mapping[str, int], ready: Ready | None, at_seconds: float
    ) -> None:
        since = self._transition(ready[0], at_seconds) if ready else self._since
        if ready:
            beat = int(at_seconds)
            self._beat = beat + 1 if self._node.uncertain and beat == self._beat else beat
            conditions = [_condition(ready, _stamp(self._beat), since)]
            told = {**told, "status": {**told.get("status", {}), "conditions": conditions}}
        await self._node.offer(told, amounts, self.acknowledged)
        self._condition, self._since = ready or self._condition, since

    def _transition(self, status: str, at_seconds: float) -> str:
        """When the condition got this status; that an agent was restarted is no transition."""
        if status == self._condition[0]:
            return self._since
        before = None if self._condition[0] else self._watched_condition(ConditionType.COLOCATION_READY)
        same = before.last_transition_time if before and before.status == status else None
        return same or _stamp(at_seconds)

    def _log_changes(self, offer: tuple[Decision, ...]) -> None:
        before = self.acknowledged
        for decision in offer:
            if before.get(decision.name) != decision.value:
                log.info("node status published", text=sentence(decision))

    async def _publish_annotations(self, result: TickResult) -> None:
        """As often as the amounts they belong to."""
        node = result.facts.node
        if not self._annotations_due or node is None:
            return
        wanted = _annotations(result.lending)
        changed = {key: text for key, text in wanted.items() if node.annotations.get(key) != text}
        if changed:
            await self._node.annotate(changed)
        self._annotations_due = False

    async def _publish_metric(self, result: TickResult) -> None:
        path = path_of(_NODE_METRICS, name=self._name, subresource="status")
        settings = result.facts.settings
        figures = statistics(result.used, settings.colocation.aggregate_durations_seconds)
        pods, applications = result.facts.pods or (), settings.host_applications
        metric = reported_metric(result.usage, figures, pods, applications, result.prediction)
        if metric is None:
            return
        body = {"status": nodemetric.status(metric, _stamp(result.observation.at_seconds))}
        try:
            await self._client.patch(path, body, PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status == 404:
                raise KubernetesFault(fault.where, fault.what, _MADE_BY_THE_LEADER, status=404) from fault
            raise


def _told(result: TickResult, offer: tuple[Decision, ...]) -> dict[str, Any]:
    status = {"status": _amounts(offer, result.lending)}
    annotations = _ratio(result)
    return {"metadata": {"annotations": annotations}, **status} if annotations else status


def _amounts(offer: tuple[Decision, ...], lent: NodeLending) -> dict[str, Any]:
    """Null removes what is no longer offered."""
    amounts = {decision.name: str(decision.value) for decision in offer}
    quantities = {decision.name: amounts.get(decision.name) for decision in lent.reclaimable}
    return {"capacity": quantities, "allocatable": quantities}


def _condition(ready: Ready, heartbeat: str, transition: str) -> dict[str, str]:
    status, reason, message = ready
    return {
        "type": ConditionType.COLOCATION_READY,
        "status": status,
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "lastHeartbeatTime": heartbeat,
        "lastTransitionTime": transition,
    }


def _ratio(result: TickResult) -> dict[str, str]:
    """The ratio that the amounts were multiplied by, where the Node does not carry it yet: they are judged by it."""
    ratio, node = result.lending.normalization_ratio, result.facts.node
    if ratio is None or ratio <= 1 or node is None:
        return {}
    wanted = labels.lending_annotations(None, ratio)
    return {key: text for key, text in wanted.items() if text is not None and node.annotations.get(key) != text}


def _annotations(lent: NodeLending) -> dict[str, str | None]:
    origin = None if lent.origin is None else lent.origin.amounts
    return labels.lending_annotations(origin, lent.normalization_ratio)


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
