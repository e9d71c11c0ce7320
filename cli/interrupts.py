"""Ctrl-C at any moment without a traceback: by the signal itself while there is nothing to clean up."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


def end_at_once() -> None:
    """From here on Ctrl-C ends the process as the kernel does, with what a shell shows as exit code 130.

    While modules are imported an exception might come up inside one that cannot stand it, or be swallowed there.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def be_raised() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again, wherever it comes; one that nobody catches says nothing."""
    sys.excepthook = _say_nothing_of_interrupts
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Within it Ctrl-C ends the process, until an event loop takes it over; afterwards all is as it was."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _say_nothing_of_interrupts(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
