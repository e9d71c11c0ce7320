"""`python -m embedded.simkernel`: keeps the files of a simulated cgroup tree true, and its limits in force.

On SIGTERM everybody it had stopped runs again; where the node is dead by then, its pods end.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from pathlib import Path
from threading import Event

from embedded.simkernel.actions import RealActions
from embedded.simkernel.kernel import SimulatedKernel
from embedded.simkernel.process_table import ProcessTable

STEP_SECONDS, IDLE_SECONDS = 0.025, 0.1
_DYING_SECONDS, _DEAD_SECONDS = 1.0, 60.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m embedded.simkernel", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the tree is")
    parser.add_argument("--owner", type=int, default=0, help="process id of the node that begins every container")
    parser.add_argument("--ready-file", type=Path, help="written once the first step is done")
    options = parser.parse_args(arguments)
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    _raise_descriptor_limit()
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    kernel = SimulatedKernel(options.root, ProcessTable(), RealActions(), cpus, options.owner)
    try:
        _run(kernel, ended, options.ready_file)
    finally:
        _finish(kernel, options.owner)
    return 0


def _run(kernel: SimulatedKernel, ended: Event, ready_file: Path | None) -> None:
    kernel.step(time.monotonic())
    if ready_file is not None:
        ready_file.write_text("{}\n")
    while not ended.wait(STEP_SECONDS if kernel.members else IDLE_SECONDS):
        kernel.step(time.monotonic())


def _finish(kernel: SimulatedKernel, owner: int) -> None:
    """The node is our parent until it has died, and has then left cgroups behind.

    The kernel tells of its death when its first thread is gone, and gives us another parent with its last: however
    long that takes on a busy machine, one whose first thread is gone is waited for.
    """
    table, began = ProcessTable(), time.monotonic()
    while kernel.finds_cgroups() and time.monotonic() - began < _patience_seconds(owner, table):
        if owner and (heir := os.getppid()) != owner:
            kernel.bury(heir)
            return
        time.sleep(STEP_SECONDS)
        kernel.step(time.monotonic())
    kernel.end()


def _patience_seconds(owner: int, table: ProcessTable) -> float:
    process = table.look(owner)
    dying = owner and not (process and process.alive)
    return _DEAD_SECONDS if dying else _DYING_SECONDS


def _raise_descriptor_limit() -> None:
    """Each cgroup takes fifteen."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    sys.exit(main())
