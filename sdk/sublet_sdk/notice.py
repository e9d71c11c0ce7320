"""Notice: that this process has to leave soon, from whoever can tell.

A source is anything with the method of `NoticeSource`; the session asks each of them at each step.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.settings import NOTICE_FILE, SOCKET_FOLDER


class NoticeSource(Protocol):
    """Where a notice comes from. It costs little to ask: it is asked at each step.

    One that knows until when the process may stay has `deadline_seconds`, too: Unix time, or None.
    """

    def noticed(self) -> str:
        """Why the process has to leave, in a few words; empty while it has not to."""
        ...

    def close(self) -> None:
        """Gives back what the source took, such as a signal's handler."""
        ...


class SignalNotice:
    """SIGTERM, which ends no process that uses this: the process ends itself when it has saved.

    The handler that was there before is called, too, and comes back with `close`. To be made in the main thread.
    """

    def __init__(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._number = number
        self._reason = ""
        self._before: Any = signal.signal(number, self._received)

    def noticed(self) -> str:
        """`SIGTERM`, once it has come."""
        return self._reason

    def close(self) -> None:
        """The handler before this one."""
        signal.signal(self._number, self._before if self._before is not None else signal.SIG_DFL)

    def _received(self, number: int, frame: FrameType | None) -> None:
        self._reason = signal.Signals(number).name
        if callable(self._before):
            self._before(number, frame)


class FileNotice:
    """A file that gets a text: the notice as the scheduler and the agent write it, or a reason in its first line.

    While it is absent or empty there is no notice.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def noticed(self) -> str:
        """The reason; empty while the file is absent or empty, as a file of Kubernetes' downward API is."""
        return self._read()[0]

    @property
    def deadline_seconds(self) -> float | None:
        """Unix time by which the process is to be gone, None without a notice that tells it."""
        return self._read()[1]

    def close(self) -> None:
        """Nothing is held."""

    def _read(self) -> tuple[str, float | None]:
        try:
            with self._path.open(encoding="utf-8", errors="replace") as file:
                line = file.readline(4000).strip()
        except (FileNotFoundError, NotADirectoryError):
            return "", None
        except OSError as fault:
            return f"notice file {self._path} cannot be read: {fault}", None
        try:
            told = json.loads(line)
            return str(told["reason"]) or line, datetime.fromisoformat(told["deadline"]).timestamp()
        except (ValueError, TypeError, KeyError, RecursionError):
            return line, None


def sources_here(variables: Mapping[str, str] = os.environ) -> list[NoticeSource]:
    """SIGTERM in the main thread, and the node's agent and the file, where the environment names them."""
    found: list[NoticeSource] = []
    if threading.current_thread() is threading.main_thread():
        found.append(SignalNotice())
    if folder := variables.get(SOCKET_FOLDER, "").strip():
        found.append(AgentSocket(Path(folder)))
    if path := variables.get(NOTICE_FILE, "").strip():
        found.append(FileNotice(Path(path)))
    return found
