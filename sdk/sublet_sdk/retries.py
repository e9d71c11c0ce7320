"""Retries: a call to the storage is made again after a bounded back-off, then its failure is reported."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from sublet_sdk.faults import CheckpointFault, StorageFault

Answer = TypeVar("Answer")
_FINAL = (PermissionError, NotImplementedError, ImportError)
"""No later attempt ends otherwise."""
_log = logging.getLogger("sublet_sdk")


@dataclass(frozen=True)
class Retries:
    """`attempts` in all; between them a pause that doubles from `first_seconds` up to `longest_seconds`."""

    attempts: int = 5
    first_seconds: float = 0.5
    longest_seconds: float = 8.0
    sleep: Callable[[float], None] = time.sleep

    def call(self, what: str, action: Callable[[], Answer]) -> Answer:
        """What the action returns. FileNotFoundError is an answer, too, and is raised at once.

        :raises StorageFault: each attempt failed
        """
        attempt = 1
        while True:
            try:
                return action()
            except (FileNotFoundError, CheckpointFault):
                raise
            # Backends raise whatever their libraries do: OSError, botocore's, aiohttp's.
            except Exception as fault:
                if attempt >= self.attempts or isinstance(fault, _FINAL):
                    raise StorageFault(f"{what}: {_words(fault)} (attempt {attempt} of {self.attempts})") from fault
                pause = min(self.first_seconds * 2 ** (attempt - 1), self.longest_seconds)
                _log.warning("%s: %s; again in %g s", what, _words(fault), pause)
            self.sleep(pause)
            attempt += 1


def _words(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__
