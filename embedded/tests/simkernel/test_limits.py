"""What control files ask for."""

from __future__ import annotations

import pytest

from embedded.simkernel.limits import Bucket, Controls, Priority, allowed_cpus, controls, priority

TEXTS = {
    "cpu.max": "max 100000\n",
    "cpu.weight": "100\n",
    "cpu.idle": "0\n",
    "cpuset.cpus": "\n",
    "memory.max": "max\n",
    "memory.high": "max\n",
    "memory.oom.group": "0\n",
}


def test_controls() -> None:
    """As a cgroup is born, and with everything set."""
    assert controls(TEXTS, Controls(quota_us=1)) == Controls()
    asked = {"cpu.max": "5000 10000", "cpu.idle": "1", "cpuset.cpus": "0-1\n", "memory.max": "7\n"}
    found = controls({**TEXTS, **asked}, Controls())
    assert found == Controls(quota_us=5000, period_us=10_000, idle=True, cpus=(0, 1), memory_max=7)


@pytest.mark.parametrize("broken", [{"cpu.max": ""}, {"cpuset.cpus": ""}, {"memory.max": "x"}, {"cpu.weight": ""}])
def test_what_is_being_written_stays_as_it_was(broken: dict[str, str]) -> None:
    """All of it, since the values belong together."""
    before = Controls(quota_us=9)
    assert controls({**TEXTS, **broken}, before) is before


def test_a_bucket_fills_to_one_period() -> None:
    """Idle time cannot be saved up."""
    bucket, limit = Bucket(), Controls(quota_us=20_000)
    assert not bucket.step(limit, 100.0, 0)
    assert not bucket.step(limit, 0.0, 20_000)
    assert bucket.step(limit, 0.0, 1)
    assert not bucket.step(limit, 0.1, 0)


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((100, 39, 100), Priority()),
        ((100, 1, 20), Priority(19)),
    ],
)
def test_priority(chain: tuple[int, ...], expected: Priority) -> None:
    """Only the least weight counts, wherever it is above the process."""
    assert priority([Controls(weight=weight) for weight in chain]) == expected
    assert priority([Controls(idle=True), Controls()]).idle


def test_allowed_cpus() -> None:
    """A list that the parent has nothing of counts as none, as in the kernel."""
    chain = [Controls(), Controls(cpus=(1, 2)), Controls(cpus=(2, 3)), Controls(cpus=(0,))]
    assert allowed_cpus(chain, (0, 1, 2, 3)) == (2,)
