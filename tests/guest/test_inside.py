"""The tests in inside/, as guests of several kernels saw them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guest import KERNELS

FILES = tuple(sorted(path.stem for path in (Path(__file__).parent / "inside").glob("test_*.py")))
FIRST = next(iter(KERNELS))
# What another kernel may do otherwise; the rest runs on the first alone, for each guest takes a minute or more.
ON_OTHERS = (
    "test_agent_acts",
    "test_cpu_qos",
    "test_cpuburst",
    "test_crash",
    "test_kernel_files",
    "test_thrashing",
    "test_watch",
)
RUNS = {kernel: FILES if kernel == FIRST else ON_OTHERS for kernel in KERNELS}
# The first of each kernel waits for the boot and the whole run.
pytestmark = [pytest.mark.slow, pytest.mark.kernel, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("kernel", "file"), [(kernel, file) for kernel, files in RUNS.items() for file in files])
def test_all_of_it_passes_on_real_cgroup_v2(inside: Any, kernel: str, file: str) -> None:
    """None fails, and none is skipped: the guest has all they need."""
    found = inside(kernel, RUNS[kernel])
    verdicts = found.verdicts.get(file, {})
    seen = f"{found.outcome.printed}\n{found.outcome.console}"
    assert verdicts, seen
    assert {name: verdict for name, verdict in verdicts.items() if verdict != "passed"} == {}, seen


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_guest_ran_to_its_end(inside: Any, kernel: str) -> None:
    """Nothing outside single tests went wrong either."""
    outcome = inside(kernel, RUNS[kernel]).outcome
    assert outcome.exit_code == 0, f"{outcome.printed}\n{outcome.console}"
