"""Withdraws what silent agents offered: a patch of the Node's status that only succeeds while the agent stays silent.

The amounts become 0, as the agent's own when it withholds: kubelet and scheduler then offer nothing, and pods that run
are left alone. The agent that returns finds amounts that are not its own, and writes them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from kube import configmap, objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.koordinator.sloconfig import ColocationFields, Layers, colocation_layers
from kube.dialects.sublet.lender import lender
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind
from kube.reconcile import Reconciler
from model.fault import ConfigurationFault, KubernetesFault
from model.lender import Lender
from model.reason import Reason, words
from scheduler.controllers.withdrawal_plan import (
    LastHeartbeat,
    WithdrawPolicy,
    heard,
    overdue,
    silence_allowed,
    withdrawn,
)
from scheduler.ports import Clock

log = structlog.get_logger()

_CHECK_SECONDS = 5.0
_CONFLICT = 409
_NOT_FOUND = 404


class Withdrawer:
    """`saw` takes every change of a Node; `run` withdraws while `leading`. `config_map` is `namespace/name`."""

    def __init__(
        self,
        client: KubeClient,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        clock: Clock,
        policy: WithdrawPolicy,
        *,
        config_map: str = "koordinator-system/slo-controller-config",
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._clock = clock
        self._policy = policy
        self._layers: Layers[ColocationFields] | None = None
        self._nodes: dict[str, tuple[Lender, LastHeartbeat | None]] = {}
        self._leading = leading
        self._reconciler = Reconciler(self._withdraw, leading)
        self._config = configmap.follow(client, config_map, self._configured)

    def saw(self, change: Change[objects.Node]) -> None:
        """Must hear of every change, so that silence can be told from not having listened."""
        name = change.object.metadata.name
        if change.kind is ChangeKind.DELETED:
            self._nodes.pop(name, None)
            return
        word = lender(change.object)
        before = self._nodes.get(name)
        self._nodes[name] = (word, heard(before[1] if before else None, word, self._clock()))

    async def run(self) -> None:
        """Never returns."""
        if not self._policy.enabled:
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._config.run())
            group.create_task(self._reconciler.run())
            while True:
                await asyncio.sleep(_CHECK_SECONDS)
                for word in self.overdue():
                    self._reconciler.add(word.node)

    def overdue(self) -> list[Lender]:
        """The nodes to withdraw from at this moment, by name."""
        return sorted((word for node in self._nodes if (word := self._overdue(node))), key=lambda word: word.node)

    def _overdue(self, node: str) -> Lender | None:
        if node not in self._nodes:
            return None
        word, known = self._nodes[node]
        after_seconds = silence_allowed(word, self._policy, self._layers)
        return word if overdue(word, known, after_seconds, self._clock()) else None

    def _configured(self, change: Change[objects.ConfigMap]) -> None:
        """A ConfigMap that cannot be read leaves the last that could in force."""
        try:
            gone = change.kind is ChangeKind.DELETED
            self._layers = None if gone else colocation_layers(change.object)
        except ConfigurationFault as fault:
            log.error("slo-controller-config not read", error=str(fault), effect="degradeTimeMinutes stays as it was")

    async def _withdraw(self, node: str) -> None:
        """Anything that happened to the Node since makes it a conflict, and the next check decides again."""
        word = self._overdue(node)
        if word is None or not self._leading():
            return
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = path_of("v1/nodes", name=node, subresource="status")
        try:
            await self._client.patch(path, withdrawn(word, stamp), PatchKind.STRATEGIC)
        except KubernetesFault as fault:
            if fault.status not in (_CONFLICT, _NOT_FOUND):
                log.warning("lent resources not withdrawn", node=node, error=str(fault))
            return
        message = f"Withdrew {', '.join(word.offered)}: {words(Reason.AGENT_NOT_RUNNING)}"
        log.warning("lent resources withdrawn", node=node, resources=list(word.offered))
        self._recorder.record(ObjectRef("Node", node, uid=node), "LendingWithdrawn", message, warning=True)
