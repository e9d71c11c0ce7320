"""Leader election on a thread of its own: a program whose event loop is busy for seconds renews its lease all the same.

The thread has its own event loop and its own connection. What it learns is handed to the loop of the process, except
for the fence `leading`, which tells the truth without any loop in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import structlog

from kube.client import KubeClient
from kube.lease import Holder, LeaseElector, LeaseSettings

log = structlog.get_logger()

_RELEASE_SECONDS = 3.0
_STOP_SECONDS = 5.0


class Leadership:
    """Campaigns while entered as a context; left, it gives the lease up. `holder` is who leads as far as is known.

    `acquired` is set once this process has led; `ended` when it never will again, whether somebody else holds the lease
    or the thread died of `error`. In between `leading` is false for as long as renewals do not come through.
    """

    def __init__(
        self, kubeconfig: Path | None, settings: LeaseSettings, identity: str, *, address: str = "", user_agent: str
    ) -> None:
        self.acquired = asyncio.Event()
        self.ended = asyncio.Event()
        self.holder = Holder()
        self.error: BaseException | None = None
        self.on_holder: Callable[[Holder], None] = lambda holder: None
        self._kubeconfig = kubeconfig
        self._settings = settings
        self._identity = identity
        self._address = address
        self._user_agent = user_agent
        self._elector: LeaseElector | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        self._wake: Callable[[], Any] = lambda: None

    def leading(self) -> bool:
        """Whether a write may go out at this moment; any thread may ask, and it may be true again later."""
        elector = self._elector
        return elector is not None and not self._stop.is_set() and elector.leading

    async def __aenter__(self) -> Leadership:
        self._home = asyncio.get_running_loop()
        threading.Thread(target=self._thread, name="lease", daemon=True).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The lease is given up if it is still ours; a server that does not answer is not waited for."""
        self._stop.set()
        self._wake()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), _STOP_SECONDS)

    def _thread(self) -> None:
        try:
            asyncio.run(self._campaign())
        except BaseException as error:
            # Whatever ends this thread ends the process: nobody else renews.
            self.error = error
        finally:
            self._tell(self.ended.set)

    async def _campaign(self) -> None:
        stopping, loop = asyncio.Event(), asyncio.get_running_loop()
        self._wake = lambda: _call(loop, stopping.set)
        if self._stop.is_set():
            return
        async with await KubeClient.connect(self._kubeconfig, self._user_agent) as client:
            elector = LeaseElector(
                client, self._settings, self._identity, address=self._address, on_holder=self._on_holder
            )
            self._elector = elector
            leading, stopped = asyncio.create_task(self._lead(elector)), asyncio.create_task(stopping.wait())
            await asyncio.wait([leading, stopped], return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if leading.done():
                leading.result()
            else:
                await self._give_up(elector, leading)

    async def _lead(self, elector: LeaseElector) -> None:
        await elector.acquire()
        self._tell(self.acquired.set)
        await elector.hold()

    async def _give_up(self, elector: LeaseElector, leading: asyncio.Task[None]) -> None:
        leading.cancel()
        await asyncio.wait([leading])
        if elector.held:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(elector.release(), _RELEASE_SECONDS)

    def _on_holder(self, holder: Holder) -> None:
        def hear() -> None:
            self.holder = holder
            self.on_holder(holder)

        self._tell(hear)

    def _tell(self, what: Callable[[], None]) -> None:
        if self._home is not None:
            _call(self._home, what)


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """In the other thread's loop; one that is closed has nothing left to learn."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
