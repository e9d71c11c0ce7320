"""Pod sockets: pods are told of their end, and tell of checkpoints, on a socket of their own.

The pod listens and the agent connects, so nobody says who it is. Each pod has a thread, and all that a pod can make
slow is done there: listing its folder, connecting, reading, closing. Linux may make whoever receives a descriptor from
a hostile peer wait when it is closed, and then that pod's thread waits alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
import structlog

from agent.core.evict.eviction_request import PendingVictim
from agent.core.evict.pod_messages import LONGEST_LINE_BYTES, CheckpointTold, checkpoint_told, heard_line, notice_line
from agent.core.evict.pod_notices import NoticeOrigin, PodNotices, PodWord
from agent.core.observe.layout import PodDirectory
from agent.files.podsocket import NotThePods, SocketFolder, has_folder, is_member
from agent.ports import TickResult
from model.fault import PeerFault
from model.pod.pod import Pod
from model.report import CheckpointSaved, PreemptionNotice

log = structlog.get_logger()

_LOOK_SECONDS = 1.0
_MOST_SOCKETS = 512
"""Of all pods; each may have its share of them."""
_MOST_OF_A_POD = 16
_MESSAGES, _MESSAGES_A_SECOND = 10.0, 1.0
_CONNECTS, _CONNECTS_A_SECOND = 16.0, 1.0
_UNREAD_SECONDS = 10.0
_LONGEST_PENALTY_SECONDS = 60.0
_FORGIVEN_SECONDS = 600.0


class SocketPlaces(msgspec.Struct, frozen=True):
    """`pods` is the kubelet's folder of pods, `tree` what cgroup paths are below."""

    pods: Path
    tree: Path


class PodSockets:
    """A sink of the tick; `pods` are the node's (None: not known yet), `directories` their cgroups by cgroup uid.

    `saved` is called on the event loop for each checkpoint that a pod reports. `folders` is how many pods have a
    thread, `refused` how often something else than the pod, or something that is no message, was at the other end.
    """

    def __init__(
        self,
        places: SocketPlaces,
        pods: Callable[[], Iterable[Pod] | None],
        directories: Callable[[], Mapping[str, PodDirectory]],
        saved: Callable[[CheckpointSaved], None],
        pending: Mapping[str, PendingVictim],
    ) -> None:
        self._places = places
        self._pods = pods
        self._directories = directories
        self._saved = saved
        self._notices = PodNotices()
        self._notices.restore(pending)
        self._talks: dict[str, _PodTalk] = {}
        self._ending: list[_PodTalk] = []
        self.refused = 0

    @property
    def folders(self) -> int:
        return len(self._talks)

    def notify(self, origin: NoticeOrigin, notice: PreemptionNotice) -> None:
        """Tell a pod at once, and whichever of its processes listens later."""
        self._notices.put(origin, notice)
        self._wake(notice.pod_uid)

    def withdraw(self, origin: NoticeOrigin, pod_uid: str) -> None:
        """The pod stays, as far as this origin is concerned."""
        self._notices.withdraw(origin, pod_uid)
        self._wake(pod_uid)

    def take(self, result: TickResult) -> None:
        """Pods that are not to be evicted any more are told so."""
        for uid in self._notices.keep_own(result.evicting.record.pending):
            self._wake(uid)

    async def run(self) -> None:
        """Never returns."""
        try:
            while True:
                await self._look()
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            for uid in tuple(self._talks):
                self._end(uid)

    async def _look(self) -> None:
        known = self._pods()
        if known is None:
            return
        pods = {pod.uid: pod for pod in known if not pod.terminal}
        ending = {uid for uid, pod in pods.items() if pod.deleting}
        for uid in self._notices.prune(pods.keys() - ending, ending, time.time()):
            self._wake(uid)
        for uid in [uid for uid, talk in self._talks.items() if uid not in pods or talk.over]:
            self._end(uid)
        await self._begin([pod for uid, pod in pods.items() if uid not in self._talks])
        share = max(1, min(_MOST_OF_A_POD, _MOST_SOCKETS // max(len(self._talks), 1)))
        for talk in self._talks.values():
            talk.share = share

    async def _begin(self, pods: Iterable[Pod]) -> None:
        """A thread for each that has a folder."""
        kubelet = self._places.pods
        found = await asyncio.to_thread(lambda: [pod for pod in pods if has_folder(kubelet, _folder_name(pod))])
        directories = self._directories() if found else {}
        self._ending = [talk for talk in self._ending if talk.is_alive()]
        for pod in found[: max(_MOST_SOCKETS - len(self._talks) - len(self._ending), 0)]:
            if (directory := directories.get(_folder_name(pod))) is not None:
                cgroup = self._places.tree / directory.path.lstrip("/")
                talk = _PodTalk(pod, kubelet, cgroup, self._notices.of, self._hear())
                talk.start()
                self._talks[pod.uid] = talk

    def _end(self, uid: str) -> None:
        talk = self._talks.pop(uid)
        talk.stop()
        self._ending.append(talk)

    def _hear(self) -> Callable[[CheckpointSaved | None], None]:
        """Called in a thread; None is a refusal."""
        loop = asyncio.get_running_loop()

        def hear(saved: CheckpointSaved | None) -> None:
            with contextlib.suppress(RuntimeError):  # The loop of an agent that has just ended is closed.
                loop.call_soon_threadsafe(self._take_word, saved)

        return hear

    def _take_word(self, saved: CheckpointSaved | None) -> None:
        if saved is None:
            self.refused += 1
        else:
            self._saved(saved)

    def _wake(self, uid: str) -> None:
        if (talk := self._talks.get(uid)) is not None:
            talk.wake()


def _folder_name(pod: Pod) -> str:
    """By which the kubelet calls its folder and its cgroup."""
    return pod.cgroup_uid or pod.uid


class _Budget:
    """So many at once, and so many a second after that."""

    def __init__(self, most: float, a_second: float) -> None:
        self._most, self._a_second = most, a_second
        self._left, self._at_seconds = most, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at_seconds) * self._a_second)
        self._at_seconds = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class _Line:
    """One connection; `word` is what it was told last, `outgoing` what of that it has not taken since then."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.word: PodWord | None = None
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.since_seconds = 0.0

    @property
    def readable(self) -> bool:
        """Whether a whole message is here, and the pod has taken all that it was told before."""
        return b"\n" in self.incoming and not self.outgoing

    def wanted(self, *, resting: bool) -> int:
        """What to wait for (poll(2)). No more is read while something is here or waits to be taken."""
        if self.outgoing:
            return select.POLLOUT
        return 0 if resting or self.readable else select.POLLIN


class _PodTalk(threading.Thread):
    """All connections of one pod. `share` is how many there may be; `over` that the thread ends."""

    def __init__(
        self,
        pod: Pod,
        pods: Path,
        cgroup: Path,
        word_for: Callable[[str], PodWord | None],
        hear: Callable[[CheckpointSaved | None], None],
    ) -> None:
        super().__init__(name=f"pod-{pod.uid[:8]}", daemon=True)
        self._pod = pod
        self._pods = pods
        self._cgroup = cgroup
        self._word_for = word_for
        self._hear = hear
        self._woken = -1
        self._lines: dict[str, _Line] = {}
        self._messages, self._connects = _Budget(_MESSAGES, _MESSAGES_A_SECOND), _Budget(_CONNECTS, _CONNECTS_A_SECOND)
        self._look_at = self._rest_until = self._penalty = self._forgiven_at = 0.0
        self._closing = threading.Lock()
        self.share = 1
        self.over = False

    def wake(self) -> None:
        """From any thread."""
        with self._closing:
            if self._woken >= 0:
                os.eventfd_write(self._woken, 1)

    def stop(self) -> None:
        """From any thread. What the thread waits for is not waited for."""
        self.over = True
        self.wake()

    def run(self) -> None:
        try:
            with self._closing:
                self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            while not self.over:
                self._turn()
        except Exception:
            log.exception("a pod's socket failed; it is tried again", pod=self._pod.key)
        finally:
            self.over = True
            with self._closing:
                if self._woken >= 0:
                    os.close(self._woken)
                self._woken = -1
            for name in tuple(self._lines):
                self._drop(name)

    def _turn(self) -> None:
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_SECONDS
            self._look()
        self._tell(now)
        self._wait(now)
        for name, line in tuple(self._lines.items()):
            if line.readable and time.monotonic() >= self._rest_until:
                self._read(name, line)

    def _wait(self, now: float) -> None:
        """For the pod, for a word to it, or for the next look."""
        resting = now < self._rest_until
        polled = select.poll()
        polled.register(self._woken, select.POLLIN)
        names = {line.connection.fileno(): name for name, line in self._lines.items()}
        for descriptor, name in names.items():
            if wanted := self._lines[name].wanted(resting=resting):
                polled.register(descriptor, wanted)
        until = min(self._look_at, self._rest_until) if resting else self._look_at
        if not resting and any(line.readable for line in self._lines.values()):
            until = now
        for descriptor, _ in polled.poll(max(until - now, 0.0) * 1000):
            if descriptor == self._woken:
                os.eventfd_read(self._woken)
            else:
                self._serve(names[descriptor], self._lines[names[descriptor]])

    def _look(self) -> None:
        """Connections to sockets that are new; none beyond the share."""
        for name in list(self._lines)[self.share :]:
            self._drop(name)
        try:
            with SocketFolder(self._pods, _folder_name(self._pod)) as folder:
                for name in folder.names():
                    if name not in self._lines and len(self._lines) < self.share:
                        self._connect(folder, name)
        except NotThePods as refusal:
            self._refuse(str(refusal))
        except FileNotFoundError:
            self.over = True
        except OSError as error:
            self._refuse(f"the folder cannot be read: {error.strerror}")

    def _connect(self, folder: SocketFolder, name: str) -> None:
        try:
            connection, process = folder.connect(name)
        except OSError:
            # Nobody listens, or has room: looked at again.
            return
        if not self._connects.take():
            connection.close()
            return
        if not is_member(self._cgroup, process):
            connection.close()
            raise NotThePods(f"process {process}, which listens at {name!r}, is in no cgroup of the pod")
        self._lines[name] = _Line(connection)

    def _tell(self, now: float) -> None:
        word = self._word_for(self._pod.uid)
        for name, line in tuple(self._lines.items()):
            if line.outgoing and now - line.since_seconds > _UNREAD_SECONDS:
                self._drop(name)
            elif word is not None and line.word is not word and not line.outgoing:
                line.word = word
                self._say(name, line, notice_line(word.notice, self._pod.spec.grace_seconds))

    def _serve(self, name: str, line: _Line) -> None:
        """After poll(2): what waits goes out, or what came is taken in."""
        if line.outgoing:
            self._say(name, line)
            return
        try:
            got = line.connection.recv(LONGEST_LINE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        line.incoming += got
        if not got:
            self._drop(name)
        elif line.incoming.find(b"\n", 0, LONGEST_LINE_BYTES) < 0 and len(line.incoming) >= LONGEST_LINE_BYTES:
            self._drop(name)
            self._refuse(f"a line of more than {LONGEST_LINE_BYTES} bytes")

    def _read(self, name: str, line: _Line) -> None:
        """One message."""
        if not self._messages.take():
            self._rest_until = time.monotonic() + 1.0 / _MESSAGES_A_SECOND
            return
        text, _, rest = line.incoming.partition(b"\n")
        line.incoming = rest
        try:
            told = checkpoint_told(bytes(text), time.time())
        except PeerFault as fault:
            self._drop(name)
            self._refuse(str(fault))
            return
        self._hear(self._saved(told))
        self._say(name, line, heard_line(told))

    def _saved(self, told: CheckpointTold) -> CheckpointSaved:
        pod = self._pod
        return CheckpointSaved(
            pod.namespace, pod.name, pod.uid, told.complete, told.step, told.begun, told.id, told.size
        )

    def _say(self, name: str, line: _Line, text: bytes = b"") -> None:
        """As much as the pod takes now; the rest once it takes more."""
        if not line.outgoing:
            line.since_seconds = time.monotonic()
        line.outgoing += text
        try:
            sent = line.connection.send(line.outgoing, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError:
            self._drop(name)
            return
        del line.outgoing[:sent]

    def _refuse(self, why: str) -> None:
        """The pod is left alone for a while, longer each time."""
        now = time.monotonic()
        longer = self._penalty * 2 if now < self._forgiven_at else 0.0
        self._penalty = min(max(longer, _LOOK_SECONDS), _LONGEST_PENALTY_SECONDS)
        self._look_at = now + self._penalty
        self._forgiven_at = self._look_at + _FORGIVEN_SECONDS
        self._hear(None)
        log.warning("pod socket refused", pod=self._pod.key, why=why, again_in_seconds=self._penalty)

    def _drop(self, name: str) -> None:
        if (line := self._lines.pop(name, None)) is not None:
            line.connection.close()
