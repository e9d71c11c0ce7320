"""Writes requirements/: every Python package of the images with its version and the SHA-256 of its wheels.

    .venv/bin/python deploy/images/lock.py

Versions are those of the environment that runs it, which the tests ran with; hashes are PyPI's for amd64 and arm64.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pythonpackages

_PROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"
_HEAD = "# Written by deploy/images/lock.py.\n"


def main() -> int:
    project = tomllib.loads(_PROJECT.read_text())
    asked = {"build": project["build-system"]["requires"]}
    for program in ("agent", "scheduler", "admission"):
        asked[program] = project["project"]["dependencies"] + project["project"]["optional-dependencies"][program]
    pythonpackages.REQUIREMENTS.mkdir(exist_ok=True)
    for name, requirements in asked.items():
        hashes = [_hashes(arch, requirements) for arch in pythonpackages.MACHINES]
        (pythonpackages.REQUIREMENTS / f"{name}.txt").write_text(_HEAD + _text(*hashes))
    return 0


def _hashes(arch: str, requirements: list[str]) -> dict[str, str]:
    """`name==version` of each requirement and of what it depends on, with the SHA-256 of the wheel for `arch`."""
    with tempfile.TemporaryDirectory() as scratch:
        versions = Path(scratch) / "versions.txt"
        pins = [f"{each.name}=={each.version}\n" for each in metadata.distributions() if _public(each)]
        versions.write_text("".join(pins))
        options = ["--quiet", "--dry-run", "--ignore-installed", "--report", "-", "--target", scratch]
        chosen = [*pythonpackages.wheels_of(arch), "--constraint", str(versions), *requirements]
        command = [sys.executable, "-m", "pip", "install", *options, *chosen]
        report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        f"{each['metadata']['name'].lower().replace('_', '-')}=={each['metadata']['version']}": each["download_info"][
            "archive_info"
        ]["hashes"]["sha256"]
        for each in report["install"]
    }


def _public(each: metadata.Distribution) -> bool:
    # pip's own requirements are of the build, which has an environment of its own.
    return each.name not in ("sublet", "sublet-local", "sublet-embedded", "sublet-sdk", "pip", "setuptools")


def _text(*architectures: Mapping[str, str]) -> str:
    """Raises SystemExit where the architectures need different packages: one file could not serve both."""
    first, second = architectures
    if first.keys() != second.keys():
        raise SystemExit(f"error: packages differ between architectures: {sorted(first.keys() ^ second.keys())}")
    lines = []
    for name in sorted(first):
        known = sorted({first[name], second[name]})
        lines.append(" \\\n    ".join([name, *(f"--hash=sha256:{each}" for each in known)]) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
