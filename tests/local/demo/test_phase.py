"""When a phase is given up."""

from __future__ import annotations

import pytest

from local.demo.phase import raise_if_spoiled
from local.demo.results import Inconclusive


def test_a_spoiled_phase_ends_the_demonstration_and_says_why() -> None:
    """Two thirds of it are left, and no calm in them would help."""
    with pytest.raises(Inconclusive, match=r'in "alone" other work kept 60 % of the CPUs busy for 5 s'):
        raise_if_spoiled(False, "alone", 60.0, 5.0, 16.0)


@pytest.mark.parametrize(("anyway", "others_pct"), [(True, 100.0), (False, 10.0)], ids=["anyway", "calm enough"])
def test_what_is_asked_for_or_calm_enough_goes_on(anyway: bool, others_pct: float) -> None:
    raise_if_spoiled(anyway, "alone", others_pct, 16.0, 16.0)
