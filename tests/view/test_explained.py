"""Of an answer what is worth telling."""

from __future__ import annotations

import msgspec

from model.explain import OFFERED
from model.placement import Scored, ScoreTerm
from tests.view.nodes import BATCH_CPU, BATCH_MEMORY, MID_CPU
from view.explained import score_table, telling
from view.table import Table


def test_what_repeats_another_number_is_left_out() -> None:
    """The offer that equals what may be lent, empty mid, and the only zone."""
    same = msgspec.structs.replace(BATCH_CPU, policy=OFFERED)
    zone = msgspec.structs.replace(BATCH_CPU, subject="node/n/zone/0")
    assert telling((BATCH_CPU, BATCH_MEMORY, MID_CPU, same, zone)) == (BATCH_CPU, BATCH_MEMORY)


def test_an_offer_that_differs_is_told() -> None:
    """It is more while running pods request more; so are zones of which there are several."""
    more = msgspec.structs.replace(BATCH_MEMORY, name=BATCH_CPU.name, policy=OFFERED)
    zones = tuple(msgspec.structs.replace(BATCH_CPU, subject=f"node/n/zone/{zone}") for zone in (0, 1))
    assert telling((BATCH_CPU, more, *zones)) == (BATCH_CPU, more, *zones)


def test_scores_stand_beside_those_of_the_next_best_node() -> None:
    """Weight × points, and the sums."""
    terms = (ScoreTerm("fit", 2, 40, 30), ScoreTerm("load", 1, 10, 20))
    assert score_table(Scored("a", "b", terms)) == Table(
        "", ("scores", "a", "b"), (("fit", "2 × 40", "2 × 30"), ("load", "1 × 10", "1 × 20"), ("= total", "90", "80"))
    )


def test_the_only_node_has_nothing_beside_it() -> None:
    found = score_table(Scored("a", "", (ScoreTerm("fit", 2, 40, 0),)))
    assert (found.head, found.rows[-1]) == (("scores", "a"), ("= total", "80"))
