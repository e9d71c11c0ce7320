"""Dead man's switch: the guard process that limits best effort while the agent's heartbeat is silent.

`sublet agent --guard` is a process of its own. After a few missed ticks it keeps the plan that the agent left in its
heartbeat, as the brake would. The last plan fits the load of the last second, not of the next hour: after a longer
silence the guard holds best effort at a fixed share as well. It only ever lowers, until the agent is back.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog

from agent.core.limit.brake import BrakePlan, BrakeSample, wanted_cut
from agent.core.limit.last_plan import LARGEST_BYTES, LastPlan, understood, written
from agent.core.limit.ownership import looser
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Value
from agent.files.durable import create_file
from agent.files.statefile import StateFile
from model.fault import Fault
from model.reason import Reason, words

if TYPE_CHECKING:
    from agent.ports import TickResult

log = structlog.get_logger()

_RESTING = 0
"""The time of a heartbeat that says: on purpose."""
_TURN_SECONDS = 1.0
_KEEPING_SECONDS = 0.2
"""While it keeps a plan: at a fiftieth of a percent of a core, a surge is answered within half a second."""
_HISTORY = 3
_BLIND_TURNS = 10
"""Counters that cannot be read for so long are not about to come back."""

Narrow = tuple[tuple[Knob, int], ...]


class Heartbeat:
    """Touched by the agent each tick, so that others see that it lives; it holds the brake's plan of that tick."""

    def __init__(self, path: Path, tick_seconds: float = 1.0) -> None:
        self._path = path
        self._tick_seconds = tick_seconds
        self._content: bytes | None = None
        self._failed = False

    def take(self, result: TickResult) -> None:
        """A sink of the tick."""
        self.beat(result.limits.brake)

    def beat(self, plan: BrakePlan | None = None) -> None:
        """Never raises: an agent that cannot beat still works, and is held to be silent."""
        self._tell(written(plan, self._tick_seconds), None)

    def rest(self) -> None:
        """Say in order that nobody limits this node any more, so that the silence to come is none."""
        self._tell(b"", (_RESTING, _RESTING))

    def _tell(self, content: bytes, times: tuple[int, int] | None) -> None:
        try:
            if content != self._content or not self._path.exists():
                self._replace(content)
        except OSError as error:
            # A disk without room still takes the time: better an older plan than none, or than silence.
            self._complain(error)
        try:
            self._touch(times)
        except OSError as error:
            self._complain(error)

    def _replace(self, content: bytes) -> None:
        """Whole or not at all. It need not survive a power failure, which ends every limit, too."""
        self._content = None
        fresh = self._path.with_name(f"{self._path.name}.new")
        with os.fdopen(create_file(fresh, 0o644), "wb") as file:
            file.write(content)
        fresh.replace(self._path)
        self._content = content

    def _touch(self, times: tuple[int, int] | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self._path, flags, 0o644)
        try:
            os.utime(descriptor, ns=times) if times else os.utime(descriptor)
        finally:
            os.close(descriptor)

    def _complain(self, error: OSError) -> None:
        if not self._failed:
            log.error("the heartbeat cannot be told", path=str(self._path), error=error.strerror)
        self._failed = True


def last_beat(path: Path) -> int | None:
    """When it was, by a clock that may step: good to tell one beat from the next, not to count from; 0 rests."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def last_plan(path: Path, layout: Layout) -> LastPlan | None:
    """What stands in the heartbeat; None where that is no plan for this node."""
    try:
        with path.open("rb") as file:
            return understood(file.read(LARGEST_BYTES + 1), layout)
    except OSError:
        return None


class Limiter(Protocol):
    """The guard's own single writer of control files."""

    def read(self, knob: Knob) -> Value | Missing: ...

    def lower(self, knob: Knob, value: int, narrow_first: Narrow = (), /) -> int | None: ...

    def restore(self) -> object: ...

    def try_disk(self) -> None: ...


class GuardShare(msgspec.Struct, frozen=True):
    """The best-effort quota that stands while nothing is heard for `silence_seconds`."""

    quota: Knob
    share_us: int
    silence_seconds: float


class HeartbeatGuard:
    """Turned each `pause_seconds`. `counters` give CPU time, None where it cannot be read; `plan` the agent's last one.

    `state` is the guard's own, not the agent's; `lower_raised` ends what the agent gave online pods for moments. An
    agent that has been beating for as long as its silence may last has everything in hand. Only where it has no plan,
    and has written nothing since, what was found is put back: one with a plan goes on from what it finds, and raises it
    when it knows enough.
    """

    def __init__(
        self,
        hold: GuardShare,
        limiter: Limiter,
        state: StateFile,
        counters: Callable[[], BrakeSample | None],
        now: float,
        lower_raised: Callable[[], int] = lambda: 0,
    ) -> None:
        self._hold = hold
        self._limiter = limiter
        self._state = state
        self._counters = counters
        self._lower_raised = lower_raised
        self._is_lowered = False
        self._samples: tuple[BrakeSample, ...] = ()
        self._blind = 0
        self._beat: int | None = None
        self._heard_at = self._silent_at = now
        self._told = ""
        self.pause_seconds = _TURN_SECONDS

    def turn(self, beat: int | None, plan: Callable[[], LastPlan | None], now: float) -> None:
        """`beat` tells one heartbeat from another, `now` is monotonic: a clock that steps is no silence.

        Nor is the rest of an agent that only observes.
        """
        if beat == _RESTING or (beat is not None and beat != self._beat):
            self._beat, self._heard_at, self._is_lowered = beat, now, False
        silent = now - self._heard_at
        left = plan() if silent >= _TURN_SECONDS else None
        keeping = left is not None and silent >= left.silence_seconds
        self.pause_seconds = _KEEPING_SECONDS if keeping else _TURN_SECONDS
        if left is not None and keeping:
            self._silent_at = now
            self._keep(left.plan)
        else:
            self._samples = ()
        if silent >= self._hold.silence_seconds:
            self._silent_at = now
            self._hold_share()
            self._end_bursts()
        elif self._state.originals and now - self._silent_at >= self._hold.silence_seconds:
            self._let_go(has_plan=plan() is not None)
        if self._state.problem:
            self._limiter.try_disk()

    def _keep(self, plan: BrakePlan) -> None:
        """As the brake: never above the plan's ceiling, and less where online pods use more than it left for them."""
        if plan.ceiling_us != UNLIMITED:
            self._lower(plan, plan.ceiling_us, "the agent is silent: its last ceiling is kept")
        sample = self._counters()
        self._samples = (*self._samples[1 - _HISTORY :], sample) if sample else ()
        self._blind = 0 if sample else self._blind + 1
        held = self._limiter.read(self._hold.quota)
        if isinstance(held, int) and (due := wanted_cut(plan, self._samples, held)) is not None:
            self._lower(plan, due[0], "the agent is silent, and online pods use more than it left for them")
        elif self._blind >= _BLIND_TURNS and plan.suffering_us is not None:
            value = max(plan.suffering_us, plan.floor_us)
            self._lower(plan, value, "the agent is silent, and what online pods use cannot be read")

    def _lower(self, plan: BrakePlan, value: int, why: str) -> None:
        was = self._limiter.lower(plan.knob, value, plan.narrow_first)
        if was is not None:
            log.warning(why, cgroup=plan.knob.cgroup, was=was, now=value)

    def _hold_share(self) -> None:
        quota, share_us = self._hold.quota, self._hold.share_us
        was = self._limiter.lower(quota, share_us)
        if was is not None:
            log.warning(words(Reason.AGENT_SILENT), cgroup=quota.cgroup, was=was, now=share_us)
        held = self._limiter.read(quota)
        if isinstance(held, Missing) or looser(held, share_us):
            self._tell_once(f"best effort cannot be held at {share_us} us: {held}")

    def _end_bursts(self) -> None:
        """Once a silence: who raised quotas of online pods is not there to lower them."""
        if not self._is_lowered:
            self._is_lowered = True
            if lowered := self._lower_raised():
                log.warning("the agent is silent: quotas that it raised are at their limits", control_files=lowered)

    def _let_go(self, *, has_plan: bool) -> None:
        try:
            if has_plan or self._limiter.read(self._hold.quota) != self._hold.share_us:
                log.info("the agent is back", effect="it goes on from what is held")
                self._state.remove()
            else:
                log.info(
                    "the agent is back", effect="what was found is put back", restored=str(self._limiter.restore())
                )
        except (OSError, Fault) as error:
            self._tell_once(f"what was found cannot be put back: {error}")

    def _tell_once(self, problem: str) -> None:
        if problem != self._told:
            log.error(problem)
        self._told = problem
