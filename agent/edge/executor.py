"""The single writer of control files: records originals first, writes, reads back, says what the kernel kept.

The tick and the brake both write through here, under one lock: a raise planned before a cut never lands after it.
What an agent before this one left behind counts as ours: the state file names the knob, the kernel holds another value.
So does what the guard process wrote while the agent was silent.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from agent.controlfiles import GONE, ControlFiles, Held
from agent.core.knobs import UNLIMITED, is_memory_limit, is_v1_cpuset, text_of, value_of
from agent.core.observation import Absence, Knob, KnobReading, Missing, Value
from agent.core.plan import Write
from agent.core.standing import gives_more
from agent.ports import KnobReadings, WriteOutcome
from agent.restoring import Restored, restore
from agent.statefile import StateFile

_SWEEP_SECONDS = 60.0


class KnobExecutor:
    """Control files below `root`; `state` learns what one said before it is first changed.

    `dry` reads and answers as ever and changes nothing. `guarded` tells what the guard found in the knobs it holds.
    """

    def __init__(
        self,
        root: Path,
        state: StateFile,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        dry: bool = False,
        guarded: Callable[[], Mapping[Knob, str]] = dict,
    ) -> None:
        self._state = state
        self._files = ControlFiles(root, self._remember_below)
        self._monotonic = monotonic
        self._dry = dry
        self._guarded = guarded
        self._lock = threading.Lock()
        self._inherited = dict(state.originals)
        self._ours: dict[Knob, Value] = {}
        self._cuts = 0
        self._last_cut: float | None = None
        self._swept_at = monotonic()
        self.path = self._files.path
        self.failed_cuts = 0

    def read(self, knob: Knob) -> Value | Missing:
        held = self._files.held(knob)
        return held if isinstance(held, Missing) else held.value

    def readings(self, knobs: tuple[Knob, ...]) -> KnobReadings:
        """No value is older than the brake's count: a cut in between drops the raises planned on them."""
        with self._lock:
            cuts, last_cut = self._cuts, self._last_cut
        return KnobReadings({knob: self._reading(knob) for knob in knobs}, cuts, last_cut)

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        """In order; all originals are on the disk, in one go, before the first of them."""
        if self._dry:
            return tuple(WriteOutcome(write, dropped=True) for write in writes)
        self._sweep()
        # Where this fails, each write fails on its own and says why.
        with contextlib.suppress(OSError):
            self._remember({write.knob: write.original for write in writes})
        return tuple(self._apply_one(write, seen_cuts) for write in writes)

    def lower(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = ()) -> int | None:
        """For the brake: write `value` if that gives less than the kernel holds now; returns what it held.

        Of `narrow_first`, quotas below it, those above `value` become unlimited before.
        """
        with self._lock:
            held = self.read(knob)
            if self._dry or isinstance(held, Missing | str) or not gives_more(knob, held, value):
                return None
            try:
                for child in (child for child, quota in narrow_first if quota > value):
                    with contextlib.suppress(OSError):
                        self._put(child, UNLIMITED)
                self._put(knob, value)
            except OSError:
                self.failed_cuts += 1
                return None
            self._cuts += 1
            self._last_cut = self._monotonic()
            return held

    def restore(self) -> Restored:
        """Put back what the state file remembers and forget it. Raises KernelFault, forgetting nothing."""
        with self._lock:
            restored = restore(self._files, self._state.originals)
            self._state.remove()
            self._ours.clear()
        return restored

    def _apply_one(self, write: Write, seen_cuts: int) -> WriteOutcome:
        knob = write.knob
        # A memory limit may take long, since the kernel reclaims first; the brake must not wait for that.
        with contextlib.nullcontext() if is_memory_limit(knob) else self._lock:
            held = self.read(knob)
            if isinstance(held, Missing):
                gone = held.absence is Absence.GONE
                return WriteOutcome(write, "" if gone else f"{held.path}: {held.detail}", dropped=gone)
            widens = gives_more(knob, write.value, held)
            if (seen_cuts != self._cuts) if widens else self._files.would_kill(knob, write.value):
                return WriteOutcome(write, dropped=True)
            try:
                self._put(knob, write.value, write.original)
            except OSError as error:
                gone = error.errno in GONE
                return WriteOutcome(write, "" if gone else f"{self.path(knob)}: {error.strerror}", dropped=gone)
        return WriteOutcome(write)

    def _reading(self, knob: Knob) -> KnobReading:
        with self._lock:
            held = self._files.held(knob)
            if isinstance(held, Missing):
                return KnobReading(held, self._ours.get(knob), self._original(knob))
            if self._inherited.pop(knob, held.text) != held.text:
                self._ours.setdefault(knob, held.value)
            ours = self._ours.get(knob)
            if ours is not None and gives_more(knob, ours, held.value) and knob in self._guarded():
                self._ours[knob] = ours = held.value
            return KnobReading(held.value, ours, self._original(knob))

    def _original(self, knob: Knob) -> Value | None:
        text = self._state.originals.get(knob)
        return None if text is None else value_of(knob, text.encode())

    def _put(self, knob: Knob, value: Value, original: Value | None = None) -> None:
        """Raises OSError; nothing is written whose original is not known."""
        self._remember({knob: original})
        if knob not in self._state.originals:
            raise OSError(errno.EIO, "what it says is not understood")
        self._ours[knob] = self._files.put(knob, value)

    def _remember(self, hints: Mapping[Knob, Value | None]) -> None:
        """What these knobs said before any of us wrote them: the hint, what the guard found, or what they say now."""
        new = {knob: hint for knob, hint in hints.items() if knob not in self._state.originals}
        if not new:
            return
        held = {knob: self._files.held(knob) for knob in new}
        texts = {knob: found.text for knob, found in held.items() if isinstance(found, Held)}
        texts |= {knob: text for knob, text in self._guarded().items() if knob in texts}
        texts |= {knob: text_of(knob, hint) for knob, hint in new.items() if hint is not None and knob in texts}
        self._state.remember(texts)

    def _remember_below(self, knob: Knob, texts: Mapping[Knob, str]) -> None:
        """A list of CPUs that nobody knew of was made while its parent's was ours: the parent's original is its own."""
        original = self._state.originals.get(knob) if is_v1_cpuset(knob) else None
        self._state.remember({child: text if original is None else original for child, text in texts.items()})

    def _sweep(self) -> None:
        """Forget cgroups that are gone, now and then: pods come and go."""
        if self._monotonic() - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = self._monotonic()
        one_each = {(knob.controller, knob.cgroup): knob for knob in self._state.originals}
        ended = {place for place, knob in one_each.items() if self._files.cgroup_is_gone(knob)}
        gone = [knob for knob in self._state.originals if (knob.controller, knob.cgroup) in ended]
        # A disk that cannot be written is told of by the writes.
        with contextlib.suppress(OSError):
            if gone:
                self._state.forget(gone)
        for knob in gone:
            self._ours.pop(knob, None)
            self._inherited.pop(knob, None)
