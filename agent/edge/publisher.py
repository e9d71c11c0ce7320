"""Writing to the API server: lent resources, condition and annotations of the node, and its NodeMetric.

Works from the newest tick in its own tasks, with back-off, so that a slow API server never delays a tick. Only our own
keys are patched; nothing else of the node is touched.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog

from agent.core.live import reported_metric
from agent.core.observation import Missing
from agent.core.publish import Published, condition, due_for_node, offered, settled
from agent.core.reclaimable import Lending
from agent.core.usage import statistics
from agent.ports import TickResult
from agent.settings import AgentSettings
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects import koordinator, nodemetric
from model.decision import Decision
from model.explain import sentence
from model.fault import KubernetesFault
from model.node import Node

log = structlog.get_logger()

CONDITION = "ColocationReady"
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_NODE_DELAY_SECONDS = 2.0
_LONGEST_METRIC_DELAY_SECONDS = 60.0
_NODE_METRICS = "slo.koordinator.sh/v1alpha1/nodemetrics"


class Publisher:
    """A sink of the tick; `run` writes node status and NodeMetric, apart so that neither waits for the other."""

    def __init__(self, client: KubeClient, node_name: str, settings: AgentSettings) -> None:
        self._client = client
        self._name = node_name
        self._settings = settings
        self._newest: TickResult | None = None
        self._fresh = asyncio.Event()
        self._started: float | None = None
        self._published: Published | None = None
        self._annotations_due = False
        self._condition = ("", "", "")
        self._since = 0.0
        self._condition_at = -math.inf
        self.failures = 0

    def take(self, result: TickResult) -> None:
        self._newest = result
        if self._started is None:
            self._started = result.observation.monotonic_seconds
        self._fresh.set()

    @property
    def published(self) -> tuple[Decision, ...]:
        """What the node's status says now, and why; empty before the first patch."""
        return self._published.decisions if self._published else ()

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publish_node_for_ever())
            tasks.create_task(self._publish_metric_for_ever())

    async def _publish_node_for_ever(self) -> None:
        delay = _FIRST_DELAY_SECONDS
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            try:
                if self._newest is not None and self._newest.facts.node is not None:
                    await self._publish_node(self._newest, self._newest.facts.node)
                    await self._publish_annotations(self._newest, self._newest.facts.node)
                delay = _FIRST_DELAY_SECONDS
            except KubernetesFault as fault:
                delay = await self._rest(fault, delay, _LONGEST_NODE_DELAY_SECONDS)

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
                await asyncio.sleep(result.facts.settings.colocation.report_seconds)
            except KubernetesFault as fault:
                delay = await self._rest(fault, delay, _LONGEST_METRIC_DELAY_SECONDS)

    async def _rest(self, fault: KubernetesFault, delay: float, longest: float) -> float:
        self.failures += 1
        log.warning("not published", error=str(fault), retry_seconds=delay)
        await asyncio.sleep(delay)
        return min(delay * 2, longest)

    async def _publish_node(self, result: TickResult, node: Node) -> None:
        now = result.observation.monotonic_seconds
        age = now - self._started if self._started is not None else 0.0
        if not settled(result.lending.reclaimable, age):
            return
        status: dict[str, Any] = {}
        ours = [decision.name for decision in result.lending.reclaimable]
        standing = {name: node.allocatable[name] for name in ours if name in node.allocatable}
        offer = self._offer(result, standing)
        amounts = {decision.name: decision.value for decision in offer}
        if due_for_node(self._published, amounts, standing, result.facts.settings.colocation, now):
            quantities = {name: str(amounts[name]) if name in amounts else None for name in ours}
            status = {"capacity": quantities, "allocatable": quantities}
        errors = [outcome.error for outcome in result.outcomes]
        ready = condition(result.degraded_reason, result.facts.problem, errors)
        if ready != self._condition or now - self._condition_at >= self._settings.heartbeat_seconds:
            status["conditions"] = [self._condition_object(ready, result)]
        if not status:
            return
        path = path_of("v1/nodes", name=self._name, subresource="status")
        await self._client.patch(path, {"status": status}, PatchKind.STRATEGIC)
        if "capacity" in status:
            self._published, self._annotations_due = Published(offer, now), True
            for decision in offer:
                log.info("node status published", text=sentence(decision))
        if "conditions" in status:
            self._condition, self._condition_at = ready, now

    async def _publish_annotations(self, result: TickResult, node: Node) -> None:
        """As often as the amounts they belong to."""
        if not self._annotations_due:
            return
        wanted = _annotations(result.lending)
        changed = {key: text for key, text in wanted.items() if node.annotations.get(key) != text}
        if changed:
            body = {"metadata": {"annotations": changed}}
            await self._client.patch(path_of("v1/nodes", name=self._name), body, PatchKind.MERGE)
        self._annotations_due = False

    def _offer(self, result: TickResult, standing: Mapping[str, int]) -> tuple[Decision, ...]:
        pods, usage = result.observation.pods, result.usage
        measured = {uid for uid, sample in pods.items() if not isinstance(sample, Missing)}
        may_grow = usage is None or usage.live_window_full
        return offered(result.lending, result.facts.pods or (), measured, standing, may_grow=may_grow)

    def _condition_object(self, ready: tuple[str, str, str], result: TickResult) -> dict[str, str]:
        now = result.observation.at_seconds
        status, reason, message = ready
        if status != self._condition[0]:
            self._since = now
        return {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": _stamp(now),
            "lastTransitionTime": _stamp(self._since or now),
        }

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
            if fault.status != 404:
                raise
            await self._client.create(path_of(_NODE_METRICS), self._empty_metric(result))
            await self._client.patch(path, body, PatchKind.MERGE)

    def _empty_metric(self, result: TickResult) -> dict[str, Any]:
        node = result.facts.node
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": node.uid if node else ""}
        return {
            "apiVersion": "slo.koordinator.sh/v1alpha1",
            "kind": "NodeMetric",
            "metadata": {"name": self._name, "ownerReferences": [owner]},
            "spec": {},
        }


def _annotations(lent: Lending) -> dict[str, str | None]:
    return koordinator.lending_annotations(lent.origin.amounts if lent.origin else None, lent.normalization_ratio)


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
