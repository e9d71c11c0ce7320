"""The single writer of control files: records originals first, writes, reads back, says what the kernel kept.

The tick and the brake both write through here, under one lock: a raise planned before a cut never lands after it.
Memory limits have a thread of their own, since the kernel reclaims before it answers, and another where it does not
answer at all (a file system that hangs); so has the disk. A cgroup that has no limit yet waits for none of these: it
is first held at what it is charged with, which needs no reclaim. The tick hears
of a limit that failed when it plans the next, which it does each tick until one is kept. A limit far below what
a cgroup holds is lowered in steps, for no longer at a time than others may wait.
Whether the disk takes anything is tried at the start, once a minute, and each tick while it does not.
What an agent before this one left behind counts as ours: the state file names the knob, the kernel holds another value.
So does what the guard process wrote while the agent was silent.
"""

from __future__ import annotations

import contextlib
import errno
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import structlog
from msgspec.structs import replace

from agent.core.limit.ownership import gives_more
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.observe.knobs import (
    UNLIMITED,
    is_burst,
    is_memory_limit,
    is_of_kubelet,
    is_quota,
    is_v1_cpuset,
    is_v1_quota,
    may_take_long,
    quota_of,
    same,
    text_of,
    value_of,
)
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Value
from agent.files.controlfiles import GONE, ControlFiles, KnobText, NotKeptError
from agent.files.oomscores import ProcessScores
from agent.files.raisedquotas import lower_raised
from agent.files.restoring import Restored, put_back, restore
from agent.files.statefile import StateFile
from agent.ports import KnobReadings, WriteOutcome
from agent.worker import WorkerThread
from model.reason import Reason

log = structlog.get_logger()

_SWEEP_SECONDS = _SAVE_SECONDS = 60.0
_DISK_SECONDS = 0.2
"""A disk that works takes a tenth of it; a tick waits no longer for one that hangs."""
_STEPS_SECONDS, _MOST_STEPS = 0.5, 1024
"""Others' memory limits wait for no more of one; the next tick goes on with it."""
_MORE_HELD = "it holds more that cannot be dropped; the limit is at that, and comes down with it"
_HANGS_SECONDS = 5.0
"""A disk that is merely busy has answered by then, and so has the kernel."""
_MOST_REMEMBERED, _LONGEST_NAME_BYTES = 4096, 1024
"""Originals in the state file, before those of cgroups that only stood in the way are left out: 250 pods have some
2,000."""
_MOST_OF_ONE = 256
_MOST_AT_ONCE = 4
"""Memory limits of others are written while so many cgroups less one hold the kernel up."""
_MOST_RELEASED = 32
"""So many files are given back in one tick: each is read, written and read again."""
_NO_ANSWER = "the kernel does not answer; other limits are written meanwhile"


class _NotSavedError(OSError):
    """What the file says is not on the disk, so that it must not be written."""


class KnobExecutor:
    """Control files below `root`; `state` learns what one said before it is first changed.

    `dry` reads and answers as ever and changes nothing. `guarded` tells what the guard found in the knobs it holds,
    `elsewhere` what another program of ours has on the disk: to write such a knob asks for no disk.
    """

    def __init__(
        self,
        root: Path,
        state: StateFile,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        dry: bool = False,
        guarded: Callable[[], Mapping[Knob, str]] = dict,
        elsewhere: Callable[[], Mapping[Knob, str]] = dict,
        scores: ProcessScores | None = None,
    ) -> None:
        self._state = state
        self._files = ControlFiles(root, self._remember_below, scores)
        self._monotonic = monotonic
        self._dry = dry
        self._guarded = guarded
        self._elsewhere = elsewhere
        self._lock = threading.RLock()
        self._disk = WorkerThread("originals")
        self._slow = WorkerThread(
            "memory limits", patience_seconds=_HANGS_SECONDS, most=_MOST_AT_ONCE, monotonic=monotonic
        )
        self._first = WorkerThread(
            "first memory limits", patience_seconds=_HANGS_SECONDS, most=_MOST_AT_ONCE, monotonic=monotonic
        )
        self._cgroups = WorkerThread("limits of cgroups", patience_seconds=_HANGS_SECONDS, monotonic=monotonic)
        self._disk_busy_since: float | None = None
        self._failed: dict[Knob, WriteOutcome] = {}
        self._under_way: dict[Knob, Write] = {}
        self._inherited = dict(state.originals)
        self._last_written: dict[Knob, Value] = {}
        self._loosened: set[Knob] = set()
        self._releases = 0
        self._cuts = 0
        self._last_cut: float | None = None
        self._swept_at = monotonic()
        # Where all originals are known from an agent before this one, nothing else would tell that the disk is full.
        self._saved_at = -math.inf
        self.path = self._files.path
        self.failed_cuts = 0

    def read(self, knob: Knob) -> Value | Missing:
        held = self._files.held(knob)
        return held if isinstance(held, Missing) else held.value

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        """No value is older than the brake's count: a cut in between drops the raises planned on them."""
        with self._lock:
            cuts, last_cut = self._cuts, self._last_cut
        left = () if claims is None or self._dry else self._left_by(claims)
        left += tuple(quota_of(knob) for knob in left if is_burst(knob))  # which bounds what the kernel takes
        return KnobReadings({knob: self._reading(knob) for knob in (*knobs, *left)}, cuts, last_cut, self._unsaved())

    def _left_by(self, claims: KnobClaims) -> tuple[Knob, ...]:
        """Some of the files with a known original that nothing wants, in turn: one that is refused keeps no other."""
        left = [knob for knob in self._state.originals if claims.leave(knob)]
        start = self._releases % max(len(left), 1)
        self._releases += _MOST_RELEASED
        return tuple((left[start:] + left[:start])[:_MOST_RELEASED])

    def remember(self, *knobs: Knob) -> None:
        """Have what they say on the disk before the first cut needs it; where that fails, writing them does too."""
        if not self._dry:
            self._remember_if_possible(dict.fromkeys(knobs))

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        """In order; all originals are on the disk, in one go, before the first of them.

        A memory limit, or one of cgroups, is still on its way when this returns; its error is that of the try before.
        """
        if self._dry:
            return tuple(WriteOutcome(write, dropped=True) for write in writes)
        self._sweep()
        self._save_originals({write.knob: write.original for write in writes})
        return tuple(
            self._send(write, seen_cuts) if may_take_long(write.knob) else self._apply_one(write, seen_cuts)
            for write in writes
        )

    def lower(self, knob: Knob, value: int, narrow_first: tuple[tuple[Knob, int], ...] = ()) -> int | None:
        """For the brake: write `value` if that gives less than the kernel holds now; returns what it held.

        Of `narrow_first`, quotas below it, those above `value` become unlimited where the kernel refuses it otherwise.
        """
        with self._lock:
            held = self.read(knob)
            if self._dry or isinstance(held, Missing | str) or not gives_more(knob, held, value):
                return None
            try:
                self._cut(knob, value, tuple(child for child, quota in narrow_first if quota > value))
            except OSError:
                self.failed_cuts += 1
                return None
            self._cuts += 1
            self._last_cut = self._monotonic()
            return held

    def look(self, knob: Knob) -> None:
        """For the brake, between two ticks: what somebody loosened is as we wrote it again, and the next reading tells.

        Where a child is in the way, the tick will do.
        """
        with self._lock:
            if not self._dry and self._is_loosened(knob, self.read(knob)):
                self._loosened.add(knob)
                with contextlib.suppress(OSError):
                    self._put(knob, self._last_written[knob], alone=True)

    def idle(self, seconds: float = 0.0) -> bool:
        """Nothing is on its way any more, within so long."""
        return all(worker.idle(seconds) for worker in (self._first, self._slow, self._cgroups, self._disk))

    def close(self) -> None:
        """Memory limits and those of cgroups that wait are not written any more."""
        self._first.close()
        self._slow.close()
        self._cgroups.close()
        self._disk.close()

    def lower_raised(self) -> None:
        """Quotas of online pods are at their limits again: nobody steps them from here on."""
        if not self._dry:
            with self._lock:
                lowered = lower_raised(self._files, self._state.originals)
            if lowered:
                log.info("quotas of online pods are at their limits again", control_files=lowered)

    def restore(self) -> Restored:
        """Put back what the state file remembers and forget it. Raises KernelFault, forgetting nothing."""
        self.close()
        with self._lock:
            restored = restore(self._files, self._state.originals)
            self._state.remove()
            self._last_written.clear()
        return restored

    def _send(self, write: Write, seen_cuts: int) -> WriteOutcome:
        worker, job = self._cgroups, self._limit_slowly
        if is_memory_limit(write.knob):
            worker, job = (self._first, self._hold) if write.previous == UNLIMITED else (self._slow, self._limit_slowly)
        before = self._failed.get(write.knob)
        if not worker.submit(write.knob, partial(job, write, seen_cuts)):
            return self._refusal(write, "too many limits wait to be written")
        if any(each.held_up(write.knob) for each in (self._first, self._slow, self._cgroups)):
            # It was submitted all the same: once the kernel answers, this is the newest.
            return self._refusal(write, _NO_ANSWER)
        return WriteOutcome(write) if before is None else replace(before, write=write)

    def _hold(self, write: Write, seen_cuts: int) -> None:
        """In the thread of first limits: the limit where nothing has to be reclaimed for it; else no more than is
        charged now, and the rest in its turn."""
        if self._files.fits(write.knob, write.value):
            self._limit_slowly(write, seen_cuts)
            return
        with contextlib.suppress(OSError):
            self._remember_at_once({write.knob: write.original})
        self._holds(write)
        self._slow.submit(write.knob, partial(self._limit_slowly, write, seen_cuts))

    def _limit_slowly(self, write: Write, seen_cuts: int) -> None:
        """In its thread. The brake does not wait for it: no lock is held while the kernel reclaims, or has the tree of
        cgroups locked."""
        least = self._files.least(write.knob, write.value)
        # What cannot be given back yet stays known, and is tried again.
        possible = replace(write, value=least, gives_back=write.gives_back and least == write.value)
        self._under_way[write.knob] = possible
        with contextlib.suppress(OSError):
            self._remember_at_once({write.knob: write.original})
        outcome = self._stepped_down(possible) or self._written(possible, seen_cuts)
        if outcome.error and self._holds(possible):
            outcome = self._refusal(write, _MORE_HELD, outcome.cause)
        if possible.value != write.value and not outcome.error and not outcome.dropped:
            outcome = self._refusal(write, _MORE_HELD)
        with self._lock:
            self._under_way.pop(write.knob, None)
            self._failed.pop(write.knob, None)
            if outcome.error:
                self._failed[write.knob] = outcome

    def _stepped_down(self, write: Write) -> WriteOutcome | None:
        """What came of steps towards a limit where others are left to the next tick; None where it is to be written."""
        if write.knob not in self._state.originals:
            return None
        until = self._monotonic() + _STEPS_SECONDS
        for _ in range(_MOST_STEPS):
            try:
                kept = self._files.step_down(write.knob, write.value)
            except (OSError, ValueError) as error:
                if not isinstance(error, OSError) or error.errno != errno.EBUSY:
                    # A cgroup that is gone, for one: the write itself tells.
                    return None
                # All at once the kernel would try on and on, as long as pages are dirtied as fast as it frees them.
                return self._refusal(write, error.strerror or error, self._cause(error))
            if kept is None:
                return None
            with self._lock:
                self._last_written[write.knob] = kept
            if self._monotonic() >= until:
                break
        return WriteOutcome(write)

    def _holds(self, write: Write) -> bool:
        """Whether a limit that was refused is at what is charged instead, so that no more is."""
        if write.knob not in self._state.originals:
            return False
        try:
            kept = self._files.hold(write.knob, write.value)
        except (OSError, ValueError):
            return False
        if kept is not None:
            with self._lock:
                self._last_written[write.knob] = kept
        return kept is not None

    def _apply_one(self, write: Write, seen_cuts: int) -> WriteOutcome:
        with self._lock:
            return self._written(write, seen_cuts)

    def _written(self, write: Write, seen_cuts: int) -> WriteOutcome:
        knob = write.knob
        held = self.read(knob)
        if isinstance(held, Missing):
            if held.absence is Absence.GONE:
                return WriteOutcome(write, dropped=True)
            return self._refusal(write, held.detail)
        if is_of_kubelet(knob, held) and not same(knob, held, write.previous):
            # It was resized since it was read: what the kubelet wrote stays, and the next tick goes by that.
            return WriteOutcome(write, dropped=True)
        widens, cut = gives_more(knob, write.value, held), seen_cuts != self._cuts
        if cut and widens:
            return WriteOutcome(write, dropped=True)
        try:
            if not write.gives_back or not same(knob, held, write.value):
                self._put(knob, write.value)
            if write.gives_back:
                self._give_back(write)
        except OSError as error:
            # Below a root that the brake cut, and whose raise was dropped, a quota planned with it is too large.
            moot = error.errno in GONE or (cut and is_v1_quota(knob) and error.errno == errno.EINVAL)
            if moot:
                return WriteOutcome(write, dropped=True)
            return self._refusal(write, error.strerror or error, self._cause(error))
        return WriteOutcome(write)

    def _give_back(self, write: Write) -> None:
        """The original's text where its value is meant, and then it is forgotten. Raises OSError."""
        knob, text = write.knob, self._state.originals.get(write.knob)
        if text is not None and value_of(knob, text.encode()) == write.value:
            error = put_back(self._files, knob, text, self._files.held(knob))
            if error:
                raise NotKeptError(errno.EIO, error)
        with self._lock:
            self._last_written.pop(knob, None)
            self._inherited.pop(knob, None)
            self._loosened.discard(knob)
        self._state.drop((knob,))
        self._disk.submit("given back", self._save_again)

    def _refusal(self, write: Write, why: object, cause: Reason | None = Reason.LIMIT_NOT_WRITTEN) -> WriteOutcome:
        return WriteOutcome(write, f"{self.path(write.knob)}: {why}", cause=cause)

    def _cause(self, error: OSError) -> Reason:
        if isinstance(error, NotKeptError):
            return Reason.LIMIT_NOT_KEPT
        unsaved = isinstance(error, _NotSavedError) and self._unsaved()
        return Reason.STATE_NOT_SAVED if unsaved else Reason.LIMIT_NOT_WRITTEN

    def _cut(self, knob: Knob, value: int, children: tuple[Knob, ...]) -> None:
        """The root first: each child costs time, and is in the way only where the kernel says so. Raises OSError."""
        self._remember_at_once({knob: None})
        try:
            self._put(knob, value, alone=True)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            limited = [child for child in children if self.read(child) != UNLIMITED]
            self._remember_at_once(dict.fromkeys(limited))
            for child in limited:
                with contextlib.suppress(OSError):
                    self._put(child, UNLIMITED)
            self._put(knob, value)

    def _reading(self, knob: Knob) -> KnobReading:
        with self._lock:
            held = self._files.held(knob)
            if isinstance(held, Missing):
                self._loosened.discard(knob)
                return KnobReading(held, self._last_written.get(knob), self._original(knob))
            if self._inherited.pop(knob, held.text) != held.text:
                self._last_written.setdefault(knob, held.value)
            coming = self._under_way.get(knob)
            if coming is not None and same(knob, held.value, coming.value):
                # The kernel shows it while it still reclaims.
                self._last_written[knob] = held.value
            ours = self._last_written.get(knob)
            lowered = is_quota(knob) and (ours is None or gives_more(knob, ours, held.value))
            if lowered and knob in self._guarded():
                self._last_written[knob] = ours = held.value
            loosened = not self._dry and (knob in self._loosened or self._is_loosened(knob, held.value))
            self._loosened.discard(knob)
            return KnobReading(held.value, ours, self._original(knob), loosened)

    def _is_loosened(self, knob: Knob, held: Value | Missing) -> bool:
        """What we wrote last, or found when we began, gave best effort less."""
        ours = self._last_written.get(knob)
        return ours is not None and not isinstance(held, Missing) and gives_more(knob, held, ours)

    def _original(self, knob: Knob) -> Value | None:
        text = self._state.originals.get(knob)
        return None if text is None else value_of(knob, text.encode())

    def _put(self, knob: Knob, value: Value, *, alone: bool = False) -> None:
        """Raises OSError; nothing is written whose original is not known. `alone`: children do not step aside."""
        if knob not in self._state.originals:
            why = self._state.problem or "what it says is not understood, or not on the disk yet"
            raise _NotSavedError(errno.EIO, why)
        kept = self._files.put_alone(knob, value) if alone else self._files.put(knob, value)
        with self._lock:
            self._last_written[knob] = kept

    def _save_originals(self, hints: Mapping[Knob, Value | None]) -> None:
        """Where this fails, or takes too long, each write that needs it fails on its own and says why."""
        if all(knob in self._state.originals for knob in hints):
            self.try_disk()
            return
        self._saved_at = self._monotonic()
        works = self._disk.idle()
        self._disk.submit("originals", partial(self._remember_if_possible, hints))
        if works:
            self._disk.idle(_DISK_SECONDS)

    def try_disk(self) -> None:
        """Its thread does, each time while it cannot be written; what came of it is told with the next readings."""
        now = self._monotonic()
        if self._state.problem or now - self._saved_at >= _SAVE_SECONDS:
            self._saved_at = now
            self._disk.submit("try", self._save_again)

    def _save_again(self) -> None:
        with contextlib.suppress(OSError):
            self._state.save_again()

    def _unsaved(self) -> str:
        """Why nothing can be saved now; empty where it can."""
        if self._disk.idle():
            self._disk_busy_since = None
        elif self._disk_busy_since is None:
            self._disk_busy_since = self._monotonic()
        since = self._disk_busy_since
        if since is not None and self._monotonic() - since >= _HANGS_SECONDS:
            return f"the state file cannot be written: {self._state.path}: the disk does not answer"
        return self._state.problem

    def _remember_if_possible(self, hints: Mapping[Knob, Value | None]) -> None:
        with contextlib.suppress(OSError):
            self._remember(hints)

    def _remember_at_once(self, hints: Mapping[Knob, Value | None]) -> None:
        """As `_remember`, but nobody waits for a disk that does not answer. Raises OSError."""
        if any(knob not in self._state.originals for knob in hints):
            self._on_disk(hints, partial(self._remember, hints))

    def _on_disk(self, knobs: Iterable[Knob], job: Callable[[], None]) -> None:
        """Done by the disk's thread, after what waits there. Where it does not come back nobody waits for it.

        Raises OSError.
        """
        done, errors = threading.Event(), list[OSError]()

        def run() -> None:
            try:
                job()
            except OSError as error:
                errors.append(error)
            finally:
                done.set()

        if not self._disk.submit(frozenset(knobs), run) or not done.wait(_DISK_SECONDS):
            raise _NotSavedError(errno.EIO, "what it says is not on the disk yet")
        if errors:
            raise errors[0]

    def _remember(self, hints: Mapping[Knob, Value | None]) -> None:
        """What these knobs said before any of us wrote them: the hint, what the guard found, or what they say now."""
        new = {knob: hint for knob, hint in hints.items() if knob not in self._state.originals}
        if not new:
            return
        held = {knob: self._files.held(knob) for knob in new}
        texts = {knob: found.text for knob, found in held.items() if isinstance(found, KnobText)}
        texts |= {knob: text for knob, text in self._guarded().items() if knob in texts}
        texts |= {knob: text_of(knob, hint) for knob, hint in new.items() if hint is not None and knob in texts}
        if texts.keys() <= self._elsewhere().keys():
            self._state.hold(texts)
            self._disk.submit("try", self._save_again)
            return
        self._state.remember(texts)

    def _remember_below(self, knob: Knob, texts: Mapping[Knob, str]) -> None:
        """A list of CPUs that nobody knew of was made while its parent's was ours: the parent's original is its own.

        A name that is no text, which no file of ours can hold, or that is very long is no kubelet's and no runtime's:
        whoever gave it has what its parents leave it. So have the deepest where there are too many, since a container
        makes as many below its own as it likes, and the state file and this process have to hold them.
        """
        known, top = self._state.originals, f"{knob.cgroup}/"
        room = max(_MOST_REMEMBERED - len(known), 0)
        new = (child for child in texts if child not in known and _is_nameable(child))
        # Each that stands directly below has its own share: one pod's cgroups leave no originals of another's out.
        of_each = Counter(_first_below(top, each.cgroup) for each in known if each.cgroup.startswith(top))
        ranked: list[tuple[int, int, Knob]] = []
        for child in sorted(new, key=lambda child: child.cgroup.count("/")):
            first, depth = _first_below(top, child.cgroup), child.cgroup.count("/")
            of_each[first] += 1
            if of_each[first] <= _MOST_OF_ONE:
                ranked.append((of_each[first], depth, child))
        # In turn, so that many with many leave room for the first few of all others.
        named = {child: texts[child] for _, _, child in sorted(ranked)[:room]}
        original = known.get(knob) if is_v1_cpuset(knob) else None
        found = {child: text if original is None else original for child, text in named.items()}
        if found:
            self._on_disk(found, partial(self._state.remember, found))

    def _sweep(self) -> None:
        """Forget cgroups that are gone, now and then: pods come and go."""
        if self._monotonic() - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = self._monotonic()
        # What could not be written for want of a disk has no original.
        one_each = {(knob.controller, knob.cgroup): knob for knob in (*self._state.originals, *tuple(self._failed))}
        ended = {place for place, knob in one_each.items() if self._files.cgroup_is_gone(knob)}
        with self._lock:
            self._failed = {k: failed for k, failed in self._failed.items() if (k.controller, k.cgroup) not in ended}
        gone = [knob for knob in self._state.originals if (knob.controller, knob.cgroup) in ended]
        if gone:
            self._disk.submit("gone", partial(self._forget, gone))
        for knob in gone:
            self._last_written.pop(knob, None)
            self._inherited.pop(knob, None)
            self._loosened.discard(knob)

    def _forget(self, gone: list[Knob]) -> None:
        # A disk that cannot be written is told of by the writes.
        with contextlib.suppress(OSError):
            self._state.forget(knob for knob in gone if self._files.cgroup_is_gone(knob))


def _first_below(top: str, cgroup: str) -> str:
    return cgroup.removeprefix(top).partition("/")[0]


def _is_nameable(knob: Knob) -> bool:
    """Neither bytes that are no UTF-8 nor thousands of levels, which a container may give its own cgroups as names."""
    try:
        return len(knob.cgroup.encode()) <= _LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        return False
