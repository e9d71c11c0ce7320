"""Container logs: one file a run, appended by the process itself, cut by the node.

    <run dir>/logs/<namespace>_<pod>_<uid>/<container>/<restart count>.log      the kubelet's /var/log/pods names

Processes write straight to the file, so a busy one costs the node nothing; the ceiling is therefore soft by what is
written between two looks. A cut keeps the last `limit` bytes as `<restart count>.log.1`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from local.node.podobject import PodObject

LIMIT_BYTES = 10 * 1024 * 1024
_BLOCK = 64 * 1024


def pod_directory(run_dir: Path, pod: PodObject) -> Path:
    return run_dir / "logs" / f"{pod.metadata.namespace}_{pod.metadata.name}_{pod.uid}"


def log_file(run_dir: Path, pod: PodObject, container: str, restart_count: int) -> Path:
    return pod_directory(run_dir, pod) / container / f"{restart_count}.log"


def open_log(file: Path) -> int:
    """A descriptor for a container's output; the logs of runs before the previous one are removed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    current = int(file.stem)
    for old in file.parent.glob("*.log*"):
        if int(old.name.partition(".")[0]) < current - 1:
            old.unlink(missing_ok=True)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def cut_large(run_dir: Path, limit_bytes: int = LIMIT_BYTES) -> int:
    """Cut every log above the limit; returns how many were cut."""
    large = [each for each in (run_dir / "logs").glob("*/*/*.log") if _size(each) > limit_bytes]
    for file in large:
        _cut(file, limit_bytes)
    return len(large)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _cut(file: Path, limit_bytes: int) -> None:
    """Copy, then truncate in place: the writer appends, so its next line starts the file anew."""
    with file.open("r+b") as source, file.with_name(file.name + ".1").open("wb") as kept:
        source.seek(-limit_bytes, os.SEEK_END)
        shutil.copyfileobj(source, kept)
        source.truncate(0)


def tail_offset(file: Path, lines: int | None) -> int:
    """Where the last `lines` lines begin; 0 for all of them."""
    if lines is None:
        return 0
    missing = lines
    with file.open("rb") as source:
        end = source.seek(0, os.SEEK_END)
        for start, block in _blocks_backwards(source.fileno(), end):
            # The newline that ends the last line begins no further one.
            block_end = len(block) - 1 if start + len(block) == end and block.endswith(b"\n") else len(block)
            while missing:
                at = block.rfind(b"\n", 0, block_end)
                if at < 0:
                    break
                missing, block_end = missing - 1, at
            if not missing:
                return start + block_end + 1 if lines else end
    return 0


def _blocks_backwards(descriptor: int, end: int) -> Iterator[tuple[int, bytes]]:
    while end > 0:
        start = max(0, end - _BLOCK)
        yield start, os.pread(descriptor, end - start, start)
        end = start


def last_words(file: Path, limit_bytes: int = 2048, lines: int = 80) -> str:
    """The end of a log, for terminationMessagePolicy FallbackToLogsOnError."""
    try:
        text = file.read_bytes()[-limit_bytes:] if _size(file) <= _BLOCK else _last_block(file)[-limit_bytes:]
    except OSError:
        return ""
    return "\n".join(text.decode(errors="replace").splitlines()[-lines:])


def _last_block(file: Path) -> bytes:
    with file.open("rb") as source:
        source.seek(-_BLOCK, os.SEEK_END)
        return source.read()
