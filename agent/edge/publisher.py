"""Writing to the API server: batch resources and the ColocationReady condition of the node, and its NodeMetric.

Works from the newest tick in its own task, with back-off, so that a slow API server never delays a tick. Only our own
keys are patched; nothing else of the node's status is touched.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import structlog

from agent.core.publish import Published, due_for_node, offered, settled
from agent.ports import TickResult
from agent.settings import AgentSettings
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.koordinator import PodMetric, node_metric_status
from model.fault import KubernetesFault

log = structlog.get_logger()

CONDITION = "ColocationReady"
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 30.0
_NODE_METRICS = "slo.koordinator.sh/v1alpha1/nodemetrics"


class Publisher:
    """A sink of the tick; `run` does the writing."""

    def __init__(self, client: KubeClient, node_name: str, settings: AgentSettings) -> None:
        self._client = client
        self._name = node_name
        self._settings = settings
        self._newest: TickResult | None = None
        self._fresh = asyncio.Event()
        self._started: float | None = None
        self._published: Published | None = None
        self._condition = ("", "")
        self._since = 0.0
        self._condition_at = 0.0
        self._metric_at = 0.0
        self.failures = 0

    def take(self, result: TickResult) -> None:
        self._newest = result
        self._started = self._started or result.observation.at_seconds
        self._fresh.set()

    @property
    def ready_reason(self) -> str:
        return self._condition[1]

    async def run(self) -> None:
        """Never returns."""
        delay = _FIRST_DELAY_SECONDS
        while True:
            await self._fresh.wait()
            self._fresh.clear()
            try:
                if self._newest is not None and self._newest.facts.node is not None:
                    await self._publish(self._newest)
                delay = _FIRST_DELAY_SECONDS
            except KubernetesFault as fault:
                self.failures += 1
                log.warning("not published", error=str(fault), retry_seconds=delay)
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LONGEST_DELAY_SECONDS)

    async def _publish(self, result: TickResult) -> None:
        now = result.observation.at_seconds
        status: dict[str, Any] = {}
        amounts = offered(result.reclaimable, result.facts.pods or ())
        blind = not settled(result.reclaimable, now - (self._started or now))
        if not blind and due_for_node(self._published, amounts, self._settings.colocation, now):
            quantities = {name: str(amount) for name, amount in amounts.items()}
            status = {"capacity": quantities, "allocatable": quantities}
        condition = ("True", "LendingActive") if not result.degraded_reason else _degraded(result)
        heartbeat_due = now - self._condition_at >= self._settings.heartbeat_seconds
        if not blind and (condition != self._condition or heartbeat_due):
            status["conditions"] = [self._condition_object(condition, result, now)]
        if status:
            path = path_of("v1/nodes", name=self._name, subresource="status")
            await self._client.patch(path, {"status": status}, PatchKind.STRATEGIC)
            self._remember(status, amounts, condition, now)
        if result.usage is not None and now - self._metric_at >= self._settings.node_metric_interval_seconds:
            await self._publish_metric(result)
            self._metric_at = now

    def _remember(
        self, status: dict[str, Any], amounts: dict[str, int], condition: tuple[str, str], now: float
    ) -> None:
        if "capacity" in status:
            self._published = Published(amounts, now)
            log.info("node status published", **{name.rsplit("/")[-1]: amount for name, amount in amounts.items()})
        if "conditions" in status:
            self._condition, self._condition_at = condition, now

    def _condition_object(self, condition: tuple[str, str], result: TickResult, now: float) -> dict[str, str]:
        if condition[0] != self._condition[0]:
            self._since = now
        message = result.degraded_reason or "idle CPU and memory of online services are lent to batch pods"
        return {
            "type": CONDITION,
            "status": condition[0],
            "reason": condition[1],
            "message": message,
            "lastHeartbeatTime": _stamp(now),
            "lastTransitionTime": _stamp(self._since or now),
        }

    async def _publish_metric(self, result: TickResult) -> None:
        path = path_of(_NODE_METRICS, name=self._name, subresource="status")
        body = {"status": _metric_status(result)}
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


def _degraded(result: TickResult) -> tuple[str, str]:
    """An invalid document leaves the last good settings at work; anything else lends nothing."""
    if result.degraded_reason == result.facts.problem:
        return "True", "ConfigurationInvalid"
    return "False", result.degraded_reason


def _metric_status(result: TickResult) -> dict[str, Any]:
    usage = result.usage
    assert usage is not None
    pods = [
        PodMetric(pod.namespace, pod.name, usage.pods[pod.uid].aggregate, pod.band.value, pod.qos.value)
        for pod in result.facts.pods or ()
        if pod.uid in usage.pods
    ]
    stamp = _stamp(usage.at_seconds)
    return node_metric_status(stamp, usage.node.aggregate, usage.unlisted_system.aggregate, pods)


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
