"""Container logs: one file a run, appended by the process itself; the node keeps time and takes the oldest part away.

    <run dir>/logs/<namespace>_<pod>_<uid>/<container>/<restart count>.log      the kubelet's /var/log/pods names
    …                                                 /<restart count>.times    (end, time) of what was written when

Processes write straight to the file: a busy one costs the node nothing, none waits for the node, and what it writes
outlives the node. So there is nobody to stamp lines as they come; the node looks at every file several times a second
and notes its size and when it was last written: that is the time of all lines that came since the look before.
Of more than 50 MiB (the kubelet's five files of 10 MiB) the oldest are punched out of the file: offsets stay as they
are, so that neither writer nor reader notices.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

import msgspec

from embedded.node.objects.pod import PodObject
from embedded.sparse_files import punch_hole

SEGMENT_BYTES = 10 * 1024 * 1024
SEGMENTS = 5
LOOK_SECONDS = 0.2
_BLOCK = 64 * 1024
_NOTE = struct.Struct("<QQ")
# A mebibyte of them for one log, whoever writes it and however slowly.
_NOTES = 65536
Note = tuple[int, ...]


def pod_directory(run_dir: Path, pod: PodObject) -> Path:
    return run_dir / "logs" / f"{pod.metadata.namespace}_{pod.metadata.name}_{pod.uid}"


def log_file(run_dir: Path, pod: PodObject, container: str, restart_count: int) -> Path:
    return pod_directory(run_dir, pod) / container / f"{restart_count}.log"


def write_begin(file: Path, offset: int) -> None:
    """What stands before `offset` is of an earlier run, and nobody's who reads this log."""
    file.with_suffix(".begin").write_text(str(offset))


def read_begin(file: Path) -> int:
    """Where the run begins: at the beginning, unless something else was said."""
    try:
        return int(file.with_suffix(".begin").read_text())
    except (OSError, ValueError):
        return 0


def open_log(file: Path) -> int:
    """A descriptor for a container's output; the logs of runs before the previous one are removed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    current = int(file.stem)
    for old in file.parent.iterdir():
        if int(old.name.partition(".")[0]) < current - 1:
            old.unlink(missing_ok=True)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


class LogKeeper:
    """Looks after the logs that are being written. `look` takes microseconds a log."""

    def __init__(
        self,
        segment_bytes: int = SEGMENT_BYTES,
        punch: Callable[[int, int], bool] | None = None,
        most_notes: int = _NOTES,
    ) -> None:
        """`punch` takes the first bytes of an open file away, and says whether it could."""
        self._most_notes = most_notes
        self._segment_bytes = segment_bytes
        self._punch = punch or punch_hole
        self._sizes: dict[Path, int] = {}
        self._starts: dict[Path, int] = {}

    def add(self, file: Path) -> None:
        self._sizes[file], self._starts[file] = _written(file)[0], 0

    def remove(self, file: Path) -> None:
        """The writer has ended: its last words get their time."""
        self._note(file)
        self._sizes.pop(file, None)
        self._starts.pop(file, None)

    def look(self) -> None:
        """Note what was written since the last look, and keep every log within its bounds."""
        for file in list(self._sizes):
            self._note(file)
            if self._sizes[file] - self._starts[file] > SEGMENTS * self._segment_bytes:
                self._shorten(file)

    def _note(self, file: Path) -> None:
        size, at_ns = _written(file)
        if size == self._sizes.get(file, size):
            return
        self._sizes[file] = size
        try:
            with _times(file).open("ab") as notes:
                notes.write(_NOTE.pack(size, at_ns))
                many = notes.tell() > self._most_notes * _NOTE.size
            if many:
                _rewrite(_times(file), _thinned)
        except OSError:
            pass  # the pod and its logs are gone, or the disk is full: a line then has the time of a later look

    def _shorten(self, file: Path) -> None:
        """Take the oldest segments, so that the newest four and what comes remain."""
        whole = self._sizes[file] // self._segment_bytes
        start = (whole - SEGMENTS + 1) * self._segment_bytes
        try:
            with file.open("r+b") as log:
                if self._punch(log.fileno(), start):
                    self._starts[file] = start
                    _rewrite(_times(file), lambda notes: [each for each in notes if each[0] > start])
                    return
                # This file system knows no holes: everything goes, and the writer starts at the beginning again.
                log.truncate(0)
            _times(file).unlink(missing_ok=True)
            self._sizes[file] = self._starts[file] = 0
        except OSError:
            self._starts[file] = self._sizes[file]


def _times(file: Path) -> Path:
    return file.with_suffix(".times")


def _rewrite(file: Path, choose: Callable[[list[Note]], list[Note]]) -> None:
    """Readers see the old file or the new one. Raises OSError."""
    kept = choose(list(_NOTE.iter_unpack(_whole(file.read_bytes()))))
    fresh = file.with_suffix(".fresh")
    fresh.write_bytes(b"".join(_NOTE.pack(*each) for each in kept))
    fresh.replace(file)


def _thinned(notes: list[Note]) -> list[Note]:
    """Of the older half every other one: those lines then have the time of the ones after them."""
    half = len(notes) // 2
    return [*notes[1:half:2], *notes[half:]]


def _written(file: Path) -> tuple[int, int]:
    """How much, and when (nanoseconds since 1970) the last of it was."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


class Times(msgspec.Struct, frozen=True):
    """When what was written: `ends[i]` bytes had been seen at `nanoseconds[i]`; later bytes count as `latest_ns`."""

    ends: tuple[int, ...]
    nanoseconds: tuple[int, ...]
    latest_ns: int

    @property
    def end(self) -> int:
        """Up to here all is told; what follows may get another time."""
        return self.ends[-1] if self.ends else 0

    def of(self, offset: int) -> int:
        """Nanoseconds since 1970 of the line that begins at `offset`."""
        at = bisect_right(self.ends, offset)
        return self.nanoseconds[at] if at < len(self.nanoseconds) else self.latest_ns

    def offset_since(self, nanoseconds: int) -> int:
        """Where what was seen at that time or later begins."""
        for at, each in enumerate(self.nanoseconds):
            if each >= nanoseconds:
                return self.ends[at - 1] if at else 0
        return self.end if self.latest_ns >= nanoseconds else 1 << 62


def read_times(file: Path, offset: int = 0) -> Times:
    """Of what stands at `offset` or later. Raises OSError when the log is gone."""
    try:
        with _times(file).open("rb", buffering=0) as held:
            held.seek(_first_note(held, offset) * _NOTE.size)
            notes = list(_NOTE.iter_unpack(_whole(held.read())))
    except FileNotFoundError:
        notes = []
    ends, moments = tuple(end for end, _ in notes), tuple(moment for _, moment in notes)
    return Times(ends, moments, file.stat().st_mtime_ns)


def _first_note(held: FileIO, offset: int) -> int:
    """The first that tells of more than `offset` bytes; ends only grow."""

    def end(at: int) -> int:
        return int(_NOTE.unpack(os.pread(held.fileno(), _NOTE.size, at * _NOTE.size))[0])

    count = os.fstat(held.fileno()).st_size // _NOTE.size
    return bisect_right(range(count), offset, key=end)


def _whole(content: bytes) -> bytes:
    return content[: len(content) // _NOTE.size * _NOTE.size]


def rfc3339(nanoseconds: int) -> str:
    """As the kubelet stamps a line."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def first_offset(log: FileIO) -> int:
    """Where the first whole line that is kept begins."""
    return after_hole(log, 0)


def after_hole(log: FileIO, offset: int) -> int:
    """`offset` itself, or the first whole line after the part that was punched out there."""
    try:
        start = log.seek(offset, os.SEEK_DATA)
    except OSError:
        return offset  # the end, or the file system cannot tell: then nothing was punched out either
    return next_line(log, start) if start > offset else offset


def next_line(log: FileIO, offset: int) -> int:
    """Where the first line at or after `offset` begins."""
    if offset <= 0:
        return 0
    log.seek(offset - 1)
    while block := log.read(_BLOCK):
        at = block.find(b"\n")
        if at >= 0:
            return log.tell() - len(block) + at + 1
    return log.tell()


def tail_offset(log: FileIO, lines: int | None, start: int = 0) -> int:
    """Where the last `lines` lines begin, `start` at the earliest; `start` for all of them."""
    if lines is None:
        return start
    missing = lines
    end = log.seek(0, os.SEEK_END)
    for begin, block in _blocks_backwards(log.fileno(), start, end):
        # The newline that ends the last line begins no further one.
        block_end = len(block) - 1 if begin + len(block) == end and block.endswith(b"\n") else len(block)
        while missing:
            at = block.rfind(b"\n", 0, block_end)
            if at < 0:
                break
            missing, block_end = missing - 1, at
        if not missing:
            return begin + block_end + 1 if lines else end
    return start


def _blocks_backwards(descriptor: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    while end > start:
        begin = max(start, end - _BLOCK)
        yield begin, os.pread(descriptor, end - begin, begin)
        end = begin


def last_words(file: Path, limit_bytes: int = 2048, lines: int = 80) -> str:
    """The end of a log, for terminationMessagePolicy FallbackToLogsOnError."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - limit_bytes))
            text = log.read(limit_bytes)
    except OSError:
        return ""
    return "\n".join(text.decode(errors="replace").splitlines()[-lines:])


def tree_bytes(directory: Path) -> int:
    """Disk space of everything below; what vanishes meanwhile counts nothing."""
    return sum(
        _disk_bytes(os.path.join(folder, name))  # noqa: PTH118 — thousands of them
        for folder, folders, files in os.walk(directory)
        for name in (*folders, *files)
    )


def _disk_bytes(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0
