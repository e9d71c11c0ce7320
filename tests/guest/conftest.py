"""What is in inside/ runs in the guest, in one pytest there; its own conftest.py is read there alone."""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from guest import INSIDE_VARIABLE, KERNELS, NO_EXIT_CODE, Guest, Outcome, Unavailable, cache_folder  # noqa: E402

collect_ignore = [] if os.environ.get(INSIDE_VARIABLE) else ["inside"]
# A busy machine of two CPUs emulates four times slower than a quiet one, which needs 60 to 90 s.
_SECONDS = 420.0
# A cache directory would be the overlay's; Hypothesis alone takes seconds to import there.
_PYTEST = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "--basetemp=/run/pytest", "--junitxml=/out/junit.xml")


class Inside(NamedTuple):
    """What the pytest in the guest did: its verdicts by file's stem, and everything it printed."""

    outcome: Outcome
    verdicts: dict[str, dict[str, str]]


@pytest.fixture(scope="session")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, tuple[str, ...]], Inside]:
    """Boots a kernel by its name and runs files by their stems, once. Skips, with the reason, where no guest can run."""
    folder, cache = tmp_path_factory.mktemp("guest"), cache_folder(tmp_path_factory.getbasetemp() / "guest-cache")

    @lru_cache
    def run(kernel: str, files: tuple[str, ...]) -> Inside | Unavailable:
        out = folder / kernel
        out.mkdir()
        paths = (str(HERE / f"inside/{file}.py") for file in files)
        try:
            outcome = Guest.prepared(cache, KERNELS[kernel]).run(
                [sys.executable, "-m", "pytest", *paths, *_PYTEST], out, _SECONDS
            )
        except Unavailable as reason:
            return reason
        # A guest that was killed at the bound may have begun its report: what it printed says how far it got.
        return Inside(outcome, {} if outcome.exit_code == NO_EXIT_CODE else _verdicts(out / "junit.xml"))

    def ran(kernel: str, files: tuple[str, ...]) -> Inside:
        found = run(kernel, files)
        if isinstance(found, Unavailable):
            pytest.skip(f"no guest with Linux {kernel}: {found}")
        return found

    return ran


def _verdicts(file: Path) -> dict[str, dict[str, str]]:
    """File's stem → test → passed, or what else it came to; nothing where pytest wrote no report."""
    if not file.exists():
        return {}
    found: dict[str, dict[str, str]] = {}
    for case in ElementTree.parse(file).getroot().iter("testcase"):
        stem = case.get("classname", "").rsplit(".", 1)[-1]
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found.setdefault(stem, {})[case.get("name", "")] = bad[0] if bad else "passed"
    return found
