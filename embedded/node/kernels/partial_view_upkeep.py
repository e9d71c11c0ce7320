"""Keeps the view of a node that is only a part of this machine true."""

from __future__ import annotations

import asyncio

import structlog

from embedded.cgroups.hierarchy import Cgroups
from embedded.cgroups.knobs import Use
from embedded.node.kernels.kernels import neighbours
from embedded.node.kernels.partial_view import Accounting, View, read_machine_use
from embedded.node.machine.share import Share
from embedded.node.settings import NodeSettings

log = structlog.get_logger()

_EVERY_SECONDS = 0.1


class PartialViewUpkeep:
    """`directories` are what the agent of this node is to take for /proc and /sys."""

    def __init__(self, settings: NodeSettings, share: Share, cgroups: Cgroups) -> None:
        self._view = View(settings.run_dir / "view", share)
        self._accounting = Accounting(share, settings.id)
        self._nodes = neighbours(settings, cgroups)
        self._view.make()
        self._use = self._look()

    @property
    def directories(self) -> dict[str, str]:
        return {"proc": str(self._view.proc), "sys": str(self._view.sys)}

    def use(self) -> Use:
        """What the node uses, by the arithmetic of what its agent is shown."""
        return self._use

    async def run(self) -> None:
        """Never returns."""
        failing = False
        try:
            while True:
                await asyncio.sleep(_EVERY_SECONDS)
                try:
                    self._use = self._look()
                    failing = False
                except (OSError, ValueError) as error:
                    if not failing:
                        log.warning("the machine's use cannot be read", error=str(error))
                    failing = True
        finally:
            self._view.close()

    def _look(self) -> Use:
        pods = {id_: cgroups.use(cgroups.layout.kubepods) for id_, cgroups in self._nodes.items()}
        reading, stat = read_machine_use(pods)
        part = self._accounting.part(reading)
        self._view.write(part, stat)
        return part.use
