"""The brake's thread: open descriptors, one prepared plan, no event loop, no JSON, no logging in its way."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from agent.core.brake import BrakePlan, BrakeSample, Cut, wanted_cut
from agent.core.files import FILES, FileKind, Part
from agent.core.layout import Layout
from agent.core.observation import Knob

_HISTORY = 3
_KEPT_CUTS = 256

MECHANISM = "polling of CPU counters"


class BrakeThread:
    """Every `interval_seconds` reads two counters; `lower` is the executor's way to cut, `wake` starts a tick."""

    def __init__(
        self,
        root: Path,
        layout: Layout,
        interval_seconds: float,
        lower: Callable[[Knob, int], int | None],
        wake: Callable[[], None],
    ) -> None:
        self._kind = next(kind for kind in FILES[layout.version] if kind.part is Part.CPU)
        groups = (layout.root, layout.best_effort)
        self._paths = [root / self._kind.controller / group.lstrip("/") / self._kind.file for group in groups]
        self._interval = interval_seconds
        self._lower = lower
        self._wake = wake
        self._plan: BrakePlan | None = None
        self._cuts: deque[Cut] = deque(maxlen=_KEPT_CUTS)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="brake", daemon=True)
        self._started = False
        self.total = 0
        self.unreadable = 0

    def arm(self, plan: BrakePlan | None) -> None:
        """The plan that holds from now on; None: nothing to defend."""
        self._plan = plan

    def drain(self) -> tuple[Cut, ...]:
        """Cuts since the last call, oldest first."""
        taken = []
        while self._cuts:
            taken.append(self._cuts.popleft())
        return tuple(taken)

    @property
    def alive(self) -> bool:
        """The thread runs, or was not started yet; a dead brake must end in a restart, not go unnoticed."""
        return not self._started or self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()
        self._started = True

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def _run(self) -> None:
        descriptors: list[int] = []
        samples: tuple[BrakeSample, ...] = ()
        while not self._stop.wait(self._interval):
            try:
                if not descriptors:
                    descriptors = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in self._paths]
                samples = (*samples[1 - _HISTORY :], _sample(descriptors, self._kind))
            except (OSError, ValueError):
                self.unreadable += 1
                descriptors, samples = _closed(descriptors), ()
                continue
            self._act(samples)
        _closed(descriptors)

    def _act(self, samples: tuple[BrakeSample, ...]) -> None:
        plan = self._plan
        due = wanted_cut(plan, samples, plan.ceiling_us) if plan else None
        if plan is None or due is None:
            return
        value, online = due
        held = self._lower(plan.knob, value)
        if held is None:
            return
        now = samples[-1].monotonic_seconds
        self._cuts.append(Cut(plan, time.time(), now, held, value, online))
        self.total += 1
        if self._plan is plan:
            self._plan = plan.lowered_to(value)
        self._wake()


def _sample(descriptors: list[int], kind: FileKind) -> BrakeSample:
    kubepods, best_effort = (kind.parse(os.pread(d, kind.size, 0))[0] for d in descriptors)
    return BrakeSample(time.monotonic(), kubepods, best_effort)


def _closed(descriptors: list[int]) -> list[int]:
    for descriptor in descriptors:
        os.close(descriptor)
    return []
