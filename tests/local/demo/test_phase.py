"""When a phase is given up."""

from __future__ import annotations

import pytest

from local.demo.phase import raise_if_speed_changed, raise_if_spoiled
from local.demo.results import Inconclusive


def test_a_spoiled_phase_ends_the_demonstration_and_says_why() -> None:
    """Two thirds of it are left, and no calm in them would help."""
    with pytest.raises(Inconclusive, match=r'in "alone" other work kept 60 % of the CPUs busy for 5 s'):
        raise_if_spoiled(False, "alone", 60.0, 5.0, 16.0)


@pytest.mark.parametrize(("anyway", "others_pct"), [(True, 100.0), (False, 10.0)], ids=["anyway", "calm enough"])
def test_what_is_asked_for_or_calm_enough_goes_on(anyway: bool, others_pct: float) -> None:
    raise_if_spoiled(anyway, "alone", others_pct, 16.0, 16.0)


@pytest.mark.parametrize("after", [0.0061, 0.0039], ids=["slower", "faster"])
def test_cpus_that_changed_their_speed_end_the_demonstration(after: float) -> None:
    """The same requests are another share of the machine then: what follows is no comparison."""
    with pytest.raises(Inconclusive, match=r'after "today" this machine needed .* ms of CPU for a request, 5.0 ms at'):
        raise_if_speed_changed(False, "today", 0.005, after)


@pytest.mark.parametrize(("anyway", "after"), [(True, 0.009), (False, 0.0059), (False, 0.0041)])
def test_a_little_change_of_speed_goes_on(anyway: bool, after: float) -> None:
    raise_if_speed_changed(anyway, "today", 0.005, after)
