"""The part of an image that is Python's: Sublet's wheel with one program's extra, and the wheels it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLACE = "usr/local/lib/python3.11/dist-packages"
"""Debian's interpreter looks here by itself."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_GLIBC_MINORS = (36, 35, 34, 33, 32, 31, 28, 27, 26, 24, 17)
"""What manylinux wheels may ask of glibc where it is Debian 12's 2.36 (PEP 600)."""
REQUIREMENTS = Path(__file__).parent / "requirements"
"""For each program, and for building our own wheel, every package with its version and the SHA-256 of its wheels;
written by lock.py."""
_GENERATED = ("client/models", "client/api", "aio/client/models", "aio/client/api")
"""One module for each Kubernetes object and group in the package `kubernetes`, loaded when it is asked for, 65 MB in
all. Sublet uses that package for identity and transport, reads the JSON itself, and asks for none of them."""
_NOT_OURS = (
    *(".*", "build", "dist", "*.egg-info", "__pycache__"),
    *("tests", "bench", "docs", "deploy", "examples", "local", "embedded", "sdk"),
)
"""What the wheel is not made of."""
_BUILT_HERE = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""Written by pip about this very run."""


def install(root: Path, program: str, arch: str, source: Path, cache: Path) -> list[str]:
    """Fill `root`; `name version` of each package.

    Raises CalledProcessError where a wheel cannot be had, or has another SHA-256 than requirements/ says.
    """
    place = root / PLACE
    place.mkdir(parents=True)
    into = ["install", "--target", str(place), "--no-compile", "--no-deps"]
    _pip(cache, *into, *wheels_of(arch), *_locked(program))
    with tempfile.TemporaryDirectory() as scratch:
        _pip(None, *into, "--no-index", str(_own_wheel(source, Path(scratch), cache)))
    installed = sorted(path.name.removesuffix(".dist-info").replace("-", " ") for path in place.glob("*.dist-info"))
    _slim(place)
    for folder in (place, root / "usr/lib/python3.11"):
        compile_ahead(folder, root)
    return installed


def wheels_of(arch: str) -> list[str]:
    """Options of pip: wheels for this architecture and Debian 12's glibc alone, nothing built from source."""
    machine = MACHINES[arch]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC_MINORS]
    named = [word for each in (*platforms, f"manylinux2014_{machine}") for word in ("--platform", each)]
    about = ["--python-version", "3.11", "--implementation", "cp", "--only-binary", ":all:"]
    return [*about, *named]


def _locked(name: str) -> list[str]:
    return ["--require-hashes", "--requirement", str(REQUIREMENTS / f"{name}.txt")]


def _own_wheel(source: Path, scratch: Path, cache: Path) -> Path:
    """Built from a copy: setuptools writes beside what it builds, and reads what an earlier build left there.

    Without pip's isolated build environment, which would hold the newest setuptools, of any hash.
    """
    backend = scratch / "backend"
    _pip(cache, "install", "--target", str(backend), "--no-deps", "--only-binary", ":all:", *_locked("build"))
    copy = scratch / "source"
    skipped = shutil.ignore_patterns(*_NOT_OURS)
    shutil.copytree(source, copy, ignore=skipped)
    _pip(None, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(scratch), str(copy), path=backend)
    (wheel,) = scratch.glob("sublet-*.whl")
    return wheel


def _pip(cache: Path | None, *arguments: str, path: Path | None = None) -> None:
    """`cache` keeps downloads; `path` is where Python finds modules besides its own."""
    stored = ["--cache-dir", str((cache / "pip").resolve())] if cache else []
    options = ["--quiet", "--disable-pip-version-check", "--no-input", *stored]
    command = [sys.executable, "-m", "pip", *arguments, *options]
    environment = os.environ | {"PIP_ROOT_USER_ACTION": "ignore"} | ({"PYTHONPATH": str(path)} if path else {})
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment)


def _slim(place: Path) -> None:
    # The scripts of the packages name this machine's Python; ours is /usr/bin/sublet.
    shutil.rmtree(place / "bin", ignore_errors=True)
    for folder in _GENERATED:
        for module in (place / "kubernetes" / folder).glob("*.py"):
            if module.name != "__init__.py":
                module.unlink()
    for tests in place.rglob("tests"):
        shutil.rmtree(tests, ignore_errors=True)
    for information in place.glob("*.dist-info"):
        for name in _BUILT_HERE:
            (information / name).unlink(missing_ok=True)


def compile_ahead(folder: Path, root: Path) -> None:
    """Compiled ahead, since the root is read only; by hash, so that no file time is in it.

    In a fresh process: how a constant is written depends on who else holds it, and so on what was compiled before.
    """
    options = ["-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/", str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([sys.executable, "-I", "-m", "compileall", *options], check=True, env=environment)
