"""The Makefile's tests: whatever is marked is run by one of its commands, though they name files."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TESTS = ("tests", "embedded/tests", "sdk/tests")
HELPERS = {"tests/scheduler/builders/lengths.py", "tests/e2e/deploy/conftest.py"}
"""What marks tests of other files: by the name `at_length`, which the Makefile knows, and in a folder that is run whole."""
KERNEL = re.compile(r"\bmark\.kernel\b")
SLOW = re.compile(r"\bmark\.slow\b|\bat_length\b")


def marked(mark: re.Pattern[str]) -> set[str]:
    """Files with tests that have the mark."""
    files = (file for folder in TESTS for file in (ROOT / folder).rglob("test_*.py"))
    return {str(file.relative_to(ROOT)) for file in files if mark.search(file.read_text())} - {_HERE}


_HERE = str(Path(__file__).relative_to(ROOT))


def commands(target: str) -> list[list[str]]:
    """Words of each pytest command of a target."""
    told = subprocess.run(["make", "-n", "-o", "dev", target], capture_output=True, text=True, cwd=ROOT, check=True)
    return [shlex.split(line) for line in told.stdout.splitlines() if " -m pytest " in line]


def runs(command: list[str], file: str) -> bool:
    """Whether a command looks into the file: all are looked into where none is named."""
    left = command[command.index("pytest") + 1 :]
    out = {left[at + 1] for at, word in enumerate(left) if word == "--ignore"}
    named = [word for word in left if (word in TESTS or "/" in word) and (ROOT / word).exists() and word not in out]
    inside = [path for path in named if file == path or file.startswith(f"{path}/")]
    return bool(inside or not named) and not any(file.startswith(f"{path}/") or file == path for path in out)


def marks(command: list[str]) -> str:
    """What it selects; nothing where it runs all."""
    words = command[command.index("pytest") :]
    return words[words.index("-m") + 1] if "-m" in words else ""


@pytest.mark.parametrize(
    ("target", "of", "mark"),
    [
        ("test-slow", SLOW, "slow"),
        ("test", KERNEL, "kernel and not slow"),
        ("test", re.compile(""), "not slow and not kernel"),
    ],
)
def test_each_marked_file_is_looked_into(target: str, of: re.Pattern[str], mark: str) -> None:
    """By a command that selects the mark, or everything."""
    chosen = [command for command in commands(target) if marks(command) in ("", mark, f"{mark} and not kernel")]
    assert chosen and sorted(file for file in marked(of) if not any(runs(each, file) for each in chosen)) == []


def test_slow_tests_of_real_cgroups_have_the_machine_for_themselves() -> None:
    """By the command that runs no two files at a time."""
    alone = [command for command in commands("test-slow") if marks(command) == "slow" and "-n" not in command]
    both = marked(SLOW) & marked(KERNEL)
    assert both and sorted(file for file in both if not any(runs(each, file) for each in alone)) == []


def test_only_what_the_makefile_knows_marks_tests_of_other_files() -> None:
    files = {str(file.relative_to(ROOT)) for folder in TESTS for file in (ROOT / folder).rglob("*.py")}
    found = {file for file in files if re.search(r"mark\.(slow|kernel)\b", (ROOT / file).read_text())}
    assert {file for file in found if not Path(file).name.startswith("test_")} == HELPERS
