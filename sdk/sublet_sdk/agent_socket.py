"""Socket between this process and the agent of its node: notices come in, saved checkpoints go out.

The process listens, in a folder that is its pod's alone, and the agent connects: so nobody has to say who it is. Where
there is no such folder, or no agent, nothing is told and nothing fails. Lines of JSON, one message each.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import selectors
import socket
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from sublet_sdk.manifest import Checkpoint

_SUFFIX = ".sock"
_CHECK_SECONDS = 2.0
"""Between two looks whether the socket is still there; a folder that is full may have room by then."""
_MOST_CONNECTIONS = 4
"""One is the agent's, another that of an agent that takes its place."""
_LONGEST_LINE_BYTES = 65_536
_LEFT_OVER_SECONDS = 60.0
_LAPSE_SECONDS = 120.0
"""After its deadline, if nobody withdrew it: whoever is still there then was spared by a word that got lost."""
_HEARD_SECONDS = 2.0
_SEND_SECONDS = 2.0
_log = logging.getLogger("sublet_sdk")


class _Connection:
    """`sent` is the id of the checkpoint that it was told of last, `waits` until it has acknowledged that."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.received = b""
        self.sent = ""
        self.waits = False


class AgentSocket:
    """A notice source, which may also be asked for the notice's `deadline_seconds`.

    A thread of its own listens until `close`. `folder` is what SUBLET_SOCKET_DIR names.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"{secrets.token_hex(8)}{_SUFFIX}"
        self._selector = selectors.PollSelector()
        self._listener: socket.socket | None = None
        self._inode = 0
        self._connections: list[_Connection] = []
        self._notice: tuple[str, float] | None = None
        self._newest: dict[str, Any] | None = None
        self._heard = threading.Event()
        self._heard.set()
        self._trouble = ""
        self._closing = False
        self._woken, self._wake = socket.socketpair()
        for each in (self._woken, self._wake):
            each.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="sublet-agent-socket", daemon=True)
        _OPEN.add(self)
        self._thread.start()

    def noticed(self) -> str:
        """Why the process has to leave; empty while it has not to, and once the notice is withdrawn."""
        notice = self._notice
        if notice is None or time.time() > notice[1] + _LAPSE_SECONDS:
            return ""
        return notice[0]

    @property
    def deadline_seconds(self) -> float | None:
        """Unix time by which the process is to be gone, None without a notice."""
        notice = self._notice
        return notice[1] if notice is not None and self.noticed() else None

    def saved(self, checkpoint: Checkpoint, begun_seconds: float) -> None:
        """Tells of a complete checkpoint whose state is of `begun_seconds` (Unix time by this machine's clock)."""
        now = time.time()
        self._newest = {
            "type": "checkpoint",
            "id": checkpoint.id,
            "step": checkpoint.step,
            "begun": min(begun_seconds, now),
            "complete": now,
            "size": checkpoint.size,
        }
        self._heard.clear()
        self._wake_up()

    def close(self) -> None:
        """The socket goes; what was saved last is told first, if an agent is there and answers soon."""
        if self._process != os.getpid():
            return
        if self._connections:
            self._heard.wait(_HEARD_SECONDS)
        self._closing = True
        self._wake_up()
        self._thread.join(_HEARD_SECONDS + _SEND_SECONDS)
        _OPEN.discard(self)

    def _wake_up(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"x")

    def _run(self) -> None:
        try:
            check_at = 0.0
            while not self._closing:
                if time.monotonic() >= check_at:
                    check_at = time.monotonic() + _CHECK_SECONDS
                    self._look_after_socket()
                self._turn(max(check_at - time.monotonic(), 0.0))
        except Exception:
            _log.exception("nothing more is heard of the node's agent; SIGTERM still is")
        finally:
            self._remove()
            for each in tuple(self._connections):
                self._drop(each)
            self._woken.close()
            self._wake.close()
            self._selector.close()

    def _turn(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            elif key.fileobj is self._listener:
                self._accept()
            elif key.data in self._connections:
                self._read(key.data)
        for each in tuple(self._connections):
            self._tell(each)

    def _look_after_socket(self) -> None:
        """Listens, again where the socket was taken away; what keeps it from that is logged once."""
        if self._listener is not None and self._is_there():
            return
        self._remove()
        try:
            self._listen()
            self._trouble = ""
        except (OSError, ValueError) as fault:
            if str(fault) != self._trouble:
                _log.warning("the node's agent cannot be heard in %s, SIGTERM still is: %s", self._folder, fault)
            self._trouble = str(fault)

    def _is_there(self) -> bool:
        try:
            return (self._folder / self._name).lstat().st_ino == self._inode
        except OSError:
            return False

    def _listen(self) -> None:
        """Under a name that nobody looks at, until somebody listens there: then others may take it for abandoned."""
        self._clear_abandoned()
        hidden = self._folder / f".{self._name}"
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            hidden.unlink(missing_ok=True)
            made.bind(str(hidden))
            # The agent may be root without the right to pass over modes.
            hidden.chmod(0o666)
            made.listen(_MOST_CONNECTIONS)
            made.setblocking(False)
            self._inode = hidden.lstat().st_ino
            hidden.replace(self._folder / self._name)
        except BaseException:
            made.close()
            with contextlib.suppress(OSError):
                hidden.unlink()
            raise
        self._listener = made
        self._selector.register(made, selectors.EVENT_READ)

    def _clear_abandoned(self) -> None:
        """Sockets of processes that ended without a word: a pod may have so many and no more."""
        for each in self._folder.iterdir():
            if each.name.endswith(_SUFFIX) and _is_abandoned(each):
                with contextlib.suppress(OSError):
                    each.unlink()

    def _remove(self) -> None:
        if self._listener is None:
            return
        self._selector.unregister(self._listener)
        self._listener.close()
        self._listener = None
        if self._is_there():
            with contextlib.suppress(OSError):
                (self._folder / self._name).unlink()

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            connected, _ = self._listener.accept()
        except OSError:
            return
        connected.settimeout(_SEND_SECONDS)
        while len(self._connections) >= _MOST_CONNECTIONS:
            self._drop(self._connections[0])
        made = _Connection(connected)
        self._connections.append(made)
        self._selector.register(connected, selectors.EVENT_READ, made)

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()

    def _read(self, connection: _Connection) -> None:
        try:
            got = connection.socket.recv(4096)
        except OSError:
            got = b""
        connection.received += got
        if not got or len(connection.received) > _LONGEST_LINE_BYTES:
            self._drop(connection)
            return
        *lines, connection.received = connection.received.split(b"\n")
        for line in lines:
            self._hear(connection, line)

    def _hear(self, connection: _Connection, line: bytes) -> None:
        """What cannot be read, or only a later version knows, is passed over."""
        try:
            told = json.loads(line)
            kind = told["type"]
            if kind == "notice":
                self._notice = str(told["reason"])[:1000] or "the node needs the room", float(told["deadline"])
            elif kind == "withdrawn":
                self._notice = None
            elif kind == "ack" and told["id"] == connection.sent:
                connection.waits = False
                if self._newest is not None and told["id"] == self._newest["id"]:
                    self._heard.set()
        except (ValueError, TypeError, KeyError, RecursionError):
            _log.debug("a line of the agent was not understood")

    def _tell(self, connection: _Connection) -> None:
        """The newest; whoever connects later may know nothing of what others heard."""
        newest = self._newest
        if newest is None or connection.waits or connection.sent == newest["id"]:
            return
        try:
            connection.socket.sendall(json.dumps(newest).encode() + b"\n")
            connection.sent, connection.waits = newest["id"], True
        except OSError:
            self._drop(connection)

    def _forget_after_fork(self) -> None:
        """A child has no thread, and must not keep a socket on which nobody answers."""
        for each in (self._listener, self._woken, self._wake, *(every.socket for every in self._connections)):
            if each is not None:
                each.close()
        self._connections = []


def _is_abandoned(path: Path) -> bool:
    """Nobody listens there; one that is being made is given a minute."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return not path.name.startswith(".") or time.time() - path.lstat().st_mtime > _LEFT_OVER_SECONDS
    return False


_OPEN: weakref.WeakSet[AgentSocket] = weakref.WeakSet()


def _after_fork() -> None:
    for each in tuple(_OPEN):
        each._forget_after_fork()


os.register_at_fork(after_in_child=_after_fork)
