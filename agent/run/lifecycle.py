"""Lifecycle: the agent's mode, and when it ends: by a signal, or for another mode by the fleet's switch."""

from __future__ import annotations

import asyncio
import signal
from typing import Protocol

from agent.settings import Mode


class FleetView(Protocol):
    """What the fleet's switch says of this node."""

    @property
    def lends(self) -> bool: ...

    @property
    def paused(self) -> bool: ...


class FleetSwitch(Protocol):
    """Where it says so, at this moment."""

    @property
    def state(self) -> FleetView: ...


class AgentLifecycle:
    """`mode` is what the settings and the switch allow, the less of both; without a switch the settings' alone."""

    def __init__(self, mode: Mode, switch: FleetSwitch | None = None) -> None:
        self.stopped = False
        self._own = mode
        self._switch = switch
        self._begun = mode
        self._ending = asyncio.Event()

    @property
    def mode(self) -> Mode:
        allowed = self._switch is None or self._switch.state.lends
        return self._own if allowed else Mode.OBSERVE

    @property
    def paused(self) -> bool:
        return self._switch is not None and self._switch.state.paused

    @property
    def gives_up_lending(self) -> bool:
        """Whether what runs is to end because this node is to observe; not where the agent is only stopped."""
        return not self.stopped and self._begun is Mode.ENFORCE and self.mode is Mode.OBSERVE

    def follow(self, switch: FleetSwitch) -> None:
        """Heed a switch; to be called before the first beginning."""
        self._switch = switch

    def begin(self) -> tuple[Mode, asyncio.Event]:
        """The mode to work in, and the event that ends this work."""
        self._begun, self._ending = self.mode, asyncio.Event()
        if self.stopped:
            self._ending.set()
        return self._begun, self._ending

    def turned(self) -> None:
        """The switch changed; a pause alone needs no new beginning."""
        if self.mode is not self._begun:
            self._ending.set()

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT end it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)

    def stop(self) -> None:
        self.stopped = True
        self._ending.set()
