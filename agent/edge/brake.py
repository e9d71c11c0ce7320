"""The brake's thread: open descriptors, one prepared watch, no event loop, no JSON, nothing slow in its way.

Each interval it compares two CPU counters with what the tick assumed. In between it sleeps until the kernel tells of
pressure or memory. It only ever takes away: it cuts best effort's CPU, wakes the tick, and kills as a last resort.
"""

from __future__ import annotations

import select
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import structlog

from agent.core.limit.brake import BrakePlan, BrakeSample, Cut, online_us, suffering_cut, wanted_cut
from agent.core.limit.watch import Kill, Mechanism, WakeCause, Watch
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.files.cpucounters import CpuCounters
from agent.last_resort_kill import LastResortKill
from agent.waking import EarlyTicks, KernelEvents

log = structlog.get_logger()

_HISTORY = 3
_KEPT = 256


class Lower(Protocol):
    """The executor's way to cut: what the kernel held before, None where nothing was lowered."""

    def __call__(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = (), /) -> int | None: ...


class BrakeThread:
    """Every `interval_seconds` reads the counters of kubepods and best effort; `wake` starts a tick.

    `look` is told as often to see whether the ceiling still stands. Owns `alarms` and `last_resort`, and closes them.
    """

    def __init__(
        self,
        root: Path,
        layout: Layout,
        interval_seconds: float,
        lower: Lower,
        wake: Callable[[], None],
        alarms: tuple[KernelEvents, ...] = (),
        last_resort: LastResortKill | None = None,
        *,
        look: Callable[[Knob], None] = lambda knob: None,
    ) -> None:
        self._counters = CpuCounters(root, layout)
        self._interval = interval_seconds
        self._lower = lower
        self._look = look
        self._waking = EarlyTicks(wake)
        self._alarms = alarms
        self._last_resort = last_resort
        # How many watches were armed, and the newest: one value, since two threads share it.
        self._armed = (0, Watch())
        self._placed = self._begun = 0
        self._in_force_us = 0
        self._samples: tuple[BrakeSample, ...] = ()
        self._cuts: deque[Cut] = deque(maxlen=_KEPT)
        self._kills: deque[Kill] = deque(maxlen=_KEPT)
        self._mechanisms: tuple[Mechanism, ...] = ()
        self._stopping = threading.Event()
        # Empty to begin with: root in a container may have used up what root may wait for.
        self._epoll = select.epoll()
        self._thread = threading.Thread(target=self._run, name="brake", daemon=True)
        self._started = False
        self.total = 0
        self.total_kills = 0

    def arm(self, watch: Watch) -> None:
        """What holds from now on: also that the plan's ceiling is in force again."""
        self._armed = (self._armed[0] + 1, watch)

    def drain(self) -> tuple[Cut, ...]:
        """Cuts since the last call, oldest first."""
        return tuple(self._cuts.popleft() for _ in range(len(self._cuts)))

    def kills(self) -> tuple[Kill, ...]:
        """What the last resort did since the last call, oldest first."""
        return tuple(self._kills.popleft() for _ in range(len(self._kills)))

    @property
    def futile_looks(self) -> int:
        """How often memory was short and no prepared victim would have helped."""
        return self._last_resort.futile_looks if self._last_resort else 0

    @property
    def unreadable(self) -> int:
        """Readings that failed, of any file."""
        memory = self._last_resort.memory.unreadable if self._last_resort else 0
        return self._counters.unreadable + memory + sum(alarms.unreadable for alarms in self._alarms)

    @property
    def fired(self) -> Mapping[str, int]:
        """How often each cause was seen."""
        return self._waking.fired

    @property
    def wakes(self) -> Mapping[str, int]:
        """How many early ticks each cause had a part in."""
        return self._waking.wakes

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What works here now, in words."""
        return tuple(mechanism.words for mechanism in self._mechanisms)

    @property
    def alive(self) -> bool:
        """The thread runs, or was not started yet; a dead brake must end in a restart, not go unnoticed."""
        return not self._started or self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()
        self._started = True

    def stop(self) -> None:
        """Ends the thread, within an interval, and closes everything."""
        if self._epoll.closed:
            return
        self._stopping.set()
        if self._started:
            self._thread.join(timeout=2)
        if not self._thread.is_alive():
            self._close()

    def _run(self) -> None:
        due, heard = time.monotonic() + self._interval, False
        while True:
            # However much the kernel has to tell, it is heard once an interval: no storm of events keeps us busy.
            seconds = max(due - time.monotonic(), 0)
            if heard:
                self._stopping.wait(seconds)
            ready = {} if heard else dict(self._epoll.poll(seconds))
            if self._stopping.is_set():
                return
            now = time.monotonic()
            is_due = now >= due
            if is_due:
                self._compare()
                self._look_at_memory(now)
            if ready:
                self._hear(ready, now)
            if is_due:
                self._kill_if_short(now)
                # Last, for it may give a descriptor that was ready another meaning.
                self._place()
                due = time.monotonic() + self._interval
            heard = bool(ready) or (heard and not is_due)
            self._waking.wake_if_due(now)

    def _compare(self) -> None:
        """Online use by the counters with what the ceiling leaves for it."""
        sample = self._counters.sample()
        self._samples = (*self._samples[1 - _HISTORY :], sample) if sample else ()
        plan = self._plan()
        if plan is not None:
            self._look(plan.knob)
        due = wanted_cut(plan, self._samples, self._in_force_us) if plan else None
        if plan is not None and due is not None:
            self._waking.saw(WakeCause.CPU_USE)
            self._cut(plan, *due, WakeCause.CPU_USE)

    def _hear(self, ready: Mapping[int, int], now: float) -> None:
        """What the kernel told."""
        for alarms in self._alarms:
            for cause in alarms.take(ready):
                self._waking.saw(cause)
                self._answer(cause, now)

    def _look_at_memory(self, now: float) -> None:
        """What the kernel does not tell."""
        for alarms in self._alarms:
            for cause in alarms.look(now):
                self._waking.saw(cause)
                self._waking.ask(cause)

    def _answer(self, cause: WakeCause, now: float) -> None:
        if cause is WakeCause.CPU_PRESSURE:
            plan = self._plan()
            value = suffering_cut(plan, self._in_force_us) if plan else None
            if plan is not None and value is not None:
                self._cut(plan, value, online_us(self._samples) or 0, cause)
            return
        self._waking.ask(cause)
        self._kill_if_short(now)

    def _plan(self) -> BrakePlan | None:
        """The plan that is armed; `_in_force_us` is its ceiling, or what it was lowered to since."""
        number, watch = self._armed
        if number != self._begun:
            self._begun = number
            self._in_force_us = watch.cpu.ceiling_us if watch.cpu else 0
        return watch.cpu

    def _cut(self, plan: BrakePlan, value: int, online: int, cause: WakeCause) -> None:
        held = self._lower(plan.knob, value, plan.narrow_first)
        if held is None:
            return
        suffering = cause is WakeCause.CPU_PRESSURE
        self._cuts.append(Cut(plan, time.time(), time.monotonic(), held, value, online, suffering))
        self._in_force_us = value
        self.total += 1
        self._waking.ask(cause)

    def _kill_if_short(self, now: float) -> None:
        if self._last_resort is None:
            return
        kill = self._last_resort.look(self._armed[1].last_resort, now, time.time())
        if kill is not None:
            self._kills.append(kill)
            self.total_kills += 1
            self._waking.saw(WakeCause.LAST_RESORT)
            self._waking.ask(WakeCause.LAST_RESORT)

    def _place(self) -> None:
        number, watch = self._armed
        for alarms in self._alarms:
            if number != self._placed:
                alarms.place(watch, self._epoll)
        self._placed = number
        found = (*self._polled(watch), *(one for alarms in self._alarms for one in alarms.mechanisms()))
        if found != self._mechanisms:
            names = [mechanism.name for mechanism in found]
            if names != [mechanism.name for mechanism in self._mechanisms]:
                log.info("early wake-ups", mechanisms=names)
            self._mechanisms = found

    def _polled(self, watch: Watch) -> tuple[Mechanism, ...]:
        each = f"each {self._interval * 1000:.0f} ms"
        counters = (Mechanism(f"CPU counters {each}"),) if self._counters.working else ()
        memory = (Mechanism(f"available memory {each}"),) if self._last_resort and watch.last_resort else ()
        return (*counters, *memory)

    def _close(self) -> None:
        self._counters.close()
        for alarms in self._alarms:
            alarms.close()
        if self._last_resort is not None:
            self._last_resort.close()
        self._epoll.close()
