"""What the demonstration prints at its end is what the README shows of it."""

from __future__ import annotations

import io

from rich.console import Console

from cli.demo import show
from local.demo.results import ALONE, SUBLET, TODAY, Checks, DemoResult, Latency, PhaseResult, spared
from tests.e2e.guides.page import untidy
from tests.e2e.test_demo import figureless, transcript


def printed() -> str:
    """Of a run in which everything was measured."""
    whole = Latency(6.4, 32.7, 1000, 0)
    phases = tuple(
        PhaseResult(name, 39.0, whole, whole, "SCHED_FIFO", batch, units, (0, 710))
        for name, batch, units in ((ALONE, None, None), (TODAY, 19.7, 4423), (SUBLET, 15.9, 3444))
    )
    checks = Checks(True, "3 of 3 ran at the same time", *spared(phases), True, "9 processes ended")
    file = io.StringIO()
    console = Console(file=file, soft_wrap=True)
    show(
        console,
        DemoResult("2 CPUs", "real", 91.0, 273.0, 16.0, 4.4, 0.0, "all default", phases, checks, 3.5, 66.0, True),
    )
    return file.getvalue()


def test_the_readme_shows_the_table_and_the_checks_of_this_version() -> None:
    """The steps before them are compared with a real run (tests/e2e/test_demo.py)."""
    told = figureless(printed())
    shown = [line for line in transcript() if not line.startswith("[")]
    assert len(shown) >= 6 and [line for line in shown if figureless(line) not in told] == []


def test_a_file_gets_no_padding() -> None:
    assert untidy(printed()) == []
