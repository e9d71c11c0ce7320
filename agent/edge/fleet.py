"""Fleet switch as one agent sees it: whether its node lends, observes, or is paused, at this moment.

Not knowing never lends more: before the first word nothing is lent; a ConfigMap that is deleted pauses, until one is
there that can be read; one that cannot be read leaves things as they were; and one that may not be watched any more
pauses after a quarter of an hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from kube import configmap, objects
from kube.client import KubeClient
from kube.dialects.sublet.fleet import Fleet, fleet
from kube.informer import Change, ChangeKind, Informer
from model.fault import ConfigurationFault

log = structlog.get_logger()

_DEAF_SECONDS = 900.0
"""As long as Koordinator's degradeTimeMinutes; a watch that works is heard of each five minutes."""


class FleetState(msgspec.Struct, frozen=True):
    """Whether this node is one that lends, and whether lending is paused."""

    lends: bool = False
    paused: bool = True


class FleetWatch:
    """`state` never waits; `on_change` is called when it changes. `config_map` is `namespace/name`."""

    def __init__(
        self,
        client: KubeClient,
        node_name: str,
        config_map: str,
        before: FleetState,
        on_change: Callable[[], None] = lambda: None,
        deaf_seconds: float = _DEAF_SECONDS,
    ) -> None:
        self._state = before
        self.deaf_seconds = deaf_seconds
        self._on_change = on_change
        self._where = config_map
        self._word: Fleet | None = None
        self._gone = False
        self._labels: dict[str, str] = {}
        self._config = configmap.follow(client, config_map, self._switched)
        self._node = Informer(
            client, "v1/nodes", objects.Node, field_selector=f"metadata.name={node_name}", on_change=self._labelled
        )

    @property
    def state(self) -> FleetState:
        """Paused, too, while the switch has not been heard of for so long that it may have been turned meanwhile."""
        deaf = self._config.silent_seconds > self.deaf_seconds
        return FleetState(self._state.lends, True) if deaf else self._state

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (self._config, self._node):
                tasks.create_task(informer.run())
            await self._node.synced.wait()
            await self._config.synced.wait()
            self._settle()

    def _switched(self, change: Change[objects.ConfigMap]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._gone = True
            log.error("fleet switch deleted", config_map=self._where, effect="nothing is lent until it is back")
        else:
            try:
                self._word, self._gone = fleet(change.object), False
            except ConfigurationFault as fault:
                log.error("fleet switch not read", error=str(fault), effect="what it said before stays")
        self._settle()

    def _labelled(self, change: Change[objects.Node]) -> None:
        """A Node that was deleted keeps its labels: the machine works on."""
        if change.kind is not ChangeKind.DELETED:
            self._labels = dict(change.object.metadata.labels or {})
            self._settle()

    def _settle(self) -> None:
        if not (self._node.synced.is_set() and self._config.synced.is_set()):
            return
        word = self._word
        lends = self._state.lends if word is None else word.lends(self._labels)
        state = FleetState(lends, word is None or word.paused or self._gone)
        if state != self._state:
            log.info("fleet switch", lends=state.lends, paused=state.paused, config_map=self._where)
            self._state = state
            self._on_change()
