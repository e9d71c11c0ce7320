"""Files that `sublet up` makes in its directory, and the mark by which it knows the directory as its own.

A person may name any directory: without the mark nothing in it is ever replaced or removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

from embedded.node.processes import mounting
from embedded.own_files import write_private
from model.fault import ConfigurationFault

MOST_NODES = 4
LOGS = "logs"
# Of the runs before this one, the last of them first.
OLD_LOGS = tuple(f"{LOGS}.{number}" for number in (1, 2, 3))
LOCK, MARK, ENDPOINTS = "lock", ".sublet-run", "endpoints.json"
STATIC = "static-programs.json"
_MARK_TEXT = b"`sublet up` made the files here, and replaces and removes them.\n"
_SUFFIXES = ("", *(f"-{number}" for number in range(1, MOST_NODES + 1)))
_AGENT_ENDS = ("sock", "probe", "state", "state.new", "heartbeat", "lock")
NODES = frozenset(f"node{suffix}" for suffix in _SUFFIXES)
# What an agent learned outlives every run.
LEARNED = frozenset(f"prediction{suffix}.json" for suffix in _SUFFIXES)
_LASTING = LEARNED | set(OLD_LOGS)
_PASSING = frozenset(
    [
        *(LOGS, "ready", "keys", "kernel", "kubeconfig", "scheduler.json", ENDPOINTS, "endpoints.new"),
        *(STATIC, f"{STATIC}.new"),
        *NODES,
        *(f"agent{suffix}.{end}" for suffix in _SUFFIXES for end in _AGENT_ENDS),
        *(f"{name}.new" for name in LEARNED),
    ]
)


def refuse_strangers(directory: Path, known: bool) -> None:
    """Raises ConfigurationFault where files lie that a run would replace, and no run made them.

    `known` tells of a run that left no mark.
    """
    # In this order: a run that begins at this moment makes the mark first.
    in_the_way = sorted(entry.name for entry in directory.iterdir() if entry.name in _PASSING | _LASTING)
    if in_the_way and not known and not _marked(directory):
        raise ConfigurationFault(
            str(directory / in_the_way[0]),
            "would be replaced, and no `sublet up` made it",
            "give --dir a new or empty directory, or remove it",
        )


def foreign(directory: Path) -> list[str]:
    """What else lies there."""
    ours = {LOCK, MARK} | _PASSING | _LASTING
    return sorted(entry.name for entry in directory.iterdir() if entry.name not in ours)


def mark(directory: Path) -> None:
    """From here on all that a run makes there is its own. Raises OSError."""
    if not _marked(directory):
        write_private(directory / MARK, _MARK_TEXT)


def put_away_logs(directory: Path) -> None:
    """Make room for the logs of a new run: those of the last three that said anything are kept. Raises OSError."""
    names = (LOGS, *OLD_LOGS)
    if not any(file.lstat().st_size for file in (directory / LOGS).glob("*")):
        return
    mounting.remove(directory / names[-1])
    for newer, older in reversed(list(pairwise(names))):
        if (directory / newer).exists():
            (directory / newer).rename(directory / older)


def forget(directory: Path, keep: Collection[str]) -> None:
    """Remove what a run made but for `keep`, old logs and what was learned; nothing behind a mount or a link."""
    for entry in directory.iterdir():
        if entry.name in keep or entry.name not in _PASSING:
            continue
        if entry.is_dir() and not entry.is_symlink():
            mounting.remove(entry)
        else:
            entry.unlink(missing_ok=True)


def _marked(directory: Path) -> bool:
    """The mark counts by its owner: others that could write there before the directory was closed may have made one."""
    try:
        found = (directory / MARK).lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
