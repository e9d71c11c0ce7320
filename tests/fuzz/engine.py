"""The contract each target must keep, and the search for inputs that break it, guided by the lines they reach."""

from __future__ import annotations

import contextlib
import math
import random
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import msgspec

from tests.fuzz.mutations import mutated
from tests.fuzz.targets import Target, corpus

ROOT = Path(__file__).parents[2]
_LIMIT = 1 << 63
_CPU_SECONDS = 1.0
"""CPU time one input of at most 32 KiB may take: fifty times what the slowest ordinary one does."""
_SHRINK_TRIES = 1000
_TOO_LONG = "takes too long"


class Breach(NamedTuple):
    """How an input broke the contract; two of the same `kind` are one finding."""

    kind: str
    detail: str


class _TooLongError(BaseException):
    """Not an Exception, so that no parser swallows it."""


def breach(target: Target, text: bytes) -> Breach | None:
    """None where the target answered with a sane value, or refused in one clear line."""
    try:
        with _cpu_limit():
            value = target.parse(text)
    except _TooLongError:
        return Breach(_TOO_LONG, f"more than {_CPU_SECONDS} s of CPU time")
    except Exception as error:
        if type(error) in target.refusals:
            return _unclear(error)
        return Breach(f"{type(error).__name__} at {_place(error)}", traceback.format_exc(limit=-6))
    return next((found for number in _numbers(value) if (found := _insane(number, target))), None)


def _unclear(error: Exception) -> Breach | None:
    """A decoder's own words are not ours to judge; whoever catches them makes one line of them."""
    if isinstance(error, msgspec.MsgspecError) or len(str(error).splitlines()) == 1:
        return None
    return Breach("the message is not one line", repr(str(error)[:600]))


def _place(error: Exception) -> str:
    """The innermost line of our own code."""
    ours = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(ROOT) and ".venv" not in frame.filename
    ]
    return f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno}"


def _numbers(value: Any) -> Iterator[int | float]:
    """Every number in a value, however deep."""
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int | float):
            yield one
        elif isinstance(one, msgspec.Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, tuple | list | set | frozenset):
            waiting += one


def _insane(number: int | float, target: Target) -> Breach | None:
    """Floats may be times before 1970; everything counted is a whole number."""
    if isinstance(number, float):
        return None if math.isfinite(number) else Breach("a number is not finite", repr(number))
    if not -_LIMIT < number < _LIMIT:
        return Breach("a number is beyond 63 bits", repr(number)[:80])
    if number < 0 and not target.signed and not (target.endless and number == -1):
        return Breach("a number is negative", repr(number))
    return None


@contextlib.contextmanager
def _cpu_limit() -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Search:
    """One target: inputs that reached something new are kept and changed further."""

    def __init__(self, name: str, target: Target, seed: str) -> None:
        self.name = name
        self.findings: dict[str, tuple[bytes, Breach]] = {}
        self.runs = 0
        self._target = target
        self._rng = random.Random(f"{name} {seed}")
        self._steps: set[tuple[CodeType, int, int]] = set()
        self._pool: list[bytes] = []
        for text in (*corpus(name).values(), b""):
            self._try(text)

    @property
    def summary(self) -> str:
        return f"{self.name}: {self.runs} inputs, {len(self._pool)} kept, {len(self._steps)} steps of code seen"

    def step(self) -> None:
        """Try one more input."""
        # The newest are the least explored.
        recent = self._rng.random() < 0.3
        text = self._rng.choice(self._pool[-8:] if recent else self._pool)
        self._try(mutated(self._rng, text, self._pool))

    def _try(self, text: bytes) -> None:
        self.runs += 1
        seen = len(self._steps)
        with _traced(self._steps):
            found = breach(self._target, text)
        if found is not None and found.kind not in self.findings:
            self.findings[found.kind] = (shrunk(self._target, text, found), found)
        if len(self._steps) > seen or not self._pool:
            self._pool.append(text)


@contextlib.contextmanager
def _traced(steps: set[tuple[CodeType, int, int]]) -> Iterator[None]:
    """Collect which line followed which in our own code."""
    inside = f"{ROOT}/"
    outside = (f"{ROOT}/tests/", f"{ROOT}/.venv/")

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(inside) or code.co_filename.startswith(outside):
            return None
        last = 0

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal last
            steps.add((code, last, frame.f_lineno))
            last = frame.f_lineno
            return step

        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)


def shrunk(target: Target, text: bytes, found: Breach) -> bytes:
    """A shorter input with the same breach, by leaving out ever smaller spans."""
    size, tries = len(text) // 2, 0
    while size and tries < _SHRINK_TRIES and found.kind != _TOO_LONG:
        start = 0
        while start < len(text) and tries < _SHRINK_TRIES:
            tries += 1
            shorter = text[:start] + text[start + size :]
            again = breach(target, shorter)
            if again is not None and again.kind == found.kind:
                text = shorter
            else:
                start += size
        size //= 2
    return text
