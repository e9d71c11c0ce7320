"""The machine a run was made on."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec

from bench import native


class Machine(msgspec.Struct, frozen=True):
    """Where the run was made; `load_1m` is the load average before it."""

    cpus: int
    cpu: str
    kernel: str
    python: str
    load_1m: float
    compilers: dict[str, str]


def this_machine() -> Machine:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    kernel, python = platform.release(), platform.python_version()
    return Machine(os.cpu_count() or 1, model, kernel, python, os.getloadavg()[0], native.versions())
