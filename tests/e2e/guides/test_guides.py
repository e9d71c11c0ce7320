"""Every command of every guide prints what the guide promises, in a cluster that the guide itself starts.

A pending step needs code that another issue brings; once it works the test fails, so that it is switched on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import joined
from tests.e2e.guides.guide import Step, steps
from tests.e2e.guides.shell import Shell

GUIDES = Path(__file__).parent.parent.parent.parent / "examples" / "guides"
_LONG = ("batch", "checkpoints", "preemption")
"""Guides that are tried in the slow tier."""
NAMES = sorted(path.parent.name for path in GUIDES.glob("*/README.md"))


def _cases() -> Iterator[object]:
    for name in NAMES:
        for step in steps((GUIDES / name / "README.md").read_text()):
            pending = pytest.mark.xfail(strict=True, reason=f"{step.pending}: then switch this step on")
            slow = [pytest.mark.slow, pytest.mark.timeout(300)]
            marks = ([pending] if step.pending else []) + (slow if name in _LONG else [])
            yield pytest.param(name, step, id=f"{name}-{step.id}", marks=marks)


@pytest.fixture(scope="module")
def shell(guide: str, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """One terminal and one cluster a guide."""
    opened = Shell(GUIDES / guide, elsewhere=joined(request.config))
    yield opened
    assert set(opened.close()) <= {0}


@pytest.mark.parametrize(("guide", "step"), list(_cases()), scope="module")
def test_a_step_prints_what_the_guide_promises(shell: Shell, guide: str, step: Step) -> None:
    if step.command.startswith("kubectl top") and not shell.has_metrics():
        pytest.skip("this API server has no metrics API: install metrics-server")
    broken = shell.run(step)
    assert not broken, f"{guide}, {step.heading}: $ {step.command}\n{broken}"


def test_there_are_guides() -> None:
    assert NAMES == ["batch", "checkpoints", "jobs", "kueue", "preemption", "queues"]
