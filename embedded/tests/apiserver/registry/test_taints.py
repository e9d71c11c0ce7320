"""Taints that follow from a node's state, and how long a pod may stay with them.

https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-based-evictions
"""

from __future__ import annotations

from typing import Any

import pytest

from embedded.apiserver.registry.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNREACHABLE,
    Taint,
    Toleration,
    stay_seconds,
    surplus_and_missing,
    wanted_taints,
    with_taints,
)

PRESSURE, CORDONED = "node.kubernetes.io/memory-pressure", "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "wanted"),
    [
        ({"Ready": "True"}, False, set()),
        ({}, False, set()),
        ({"Ready": "False"}, False, {(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)}),
        ({"Ready": "Unknown"}, False, {(UNREACHABLE, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)}),
        ({"Ready": "True", "MemoryPressure": "True"}, False, {(PRESSURE, NO_SCHEDULE)}),
        ({"MemoryPressure": "False", "Other": "True"}, False, set()),
        ({"Ready": "True"}, True, {(CORDONED, NO_SCHEDULE)}),
    ],
)
def test_wanted(conditions: dict[str, str], unschedulable: bool, wanted: set[tuple[str, str]]) -> None:
    """Pods leave for the node's readiness alone."""
    assert wanted_taints(conditions, unschedulable) == wanted


def test_surplus_and_missing() -> None:
    """Others' taints stay; whether pods must leave is left alone until the node is judged."""
    own = frozenset({(PRESSURE, NO_SCHEDULE)})
    held = [("theirs", NO_SCHEDULE), (NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)]
    assert surplus_and_missing(held, own, judged=True) == (
        {(NOT_READY, NO_SCHEDULE), (NOT_READY, NO_EXECUTE)},
        {(PRESSURE, NO_SCHEDULE)},
    )
    assert surplus_and_missing(held, own, judged=False)[0] == {(NOT_READY, NO_SCHEDULE)}
    assert surplus_and_missing([(PRESSURE, NO_SCHEDULE)], own, judged=True) == (set(), set())


def test_the_taints_after_a_change() -> None:
    """What is kept stays as it was; what is added says when."""
    held = [{"key": "theirs", "effect": NO_SCHEDULE, "value": "v"}, {"key": NOT_READY, "effect": NO_SCHEDULE}]
    after = with_taints(held, {(NOT_READY, NO_SCHEDULE)}, {(PRESSURE, NO_SCHEDULE)}, 0.0)
    assert after == [held[0], {"key": PRESSURE, "effect": NO_SCHEDULE, "timeAdded": "1970-01-01T00:00:00Z"}]


LOST, OWN = Taint(NOT_READY, NO_EXECUTE), Taint("own", NO_EXECUTE, "v")
STAYS: dict[str, tuple[list[Toleration], list[Taint], float | None]] = {
    "no taint": ([], [], None),
    "no toleration": ([], [LOST], 0.0),
    "for ever": ([Toleration(NOT_READY, "Exists")], [LOST], None),
    "for so long": ([Toleration(NOT_READY, "Exists", toleration_seconds=300)], [LOST], 300.0),
    "not below nothing": ([Toleration(NOT_READY, "Exists", toleration_seconds=-5)], [LOST], 0.0),
    "everything": ([Toleration(operator="Exists")], [LOST, OWN], None),
    "another effect": ([Toleration(NOT_READY, "Exists", effect=NO_SCHEDULE)], [LOST], 0.0),
    "this effect": ([Toleration(NOT_READY, "Exists", effect=NO_EXECUTE)], [LOST], None),
    "its value": ([Toleration("own", "Equal", "v")], [OWN], None),
    "another value": ([Toleration("own", "Equal", "w")], [OWN], 0.0),
    "the first that covers it counts": (
        [Toleration(NOT_READY, "Exists", toleration_seconds=9), Toleration(operator="Exists")],
        [LOST],
        9.0,
    ),
    "the shortest of several taints": (
        [Toleration(NOT_READY, "Exists", toleration_seconds=9), Toleration("own", "Exists", toleration_seconds=5)],
        [LOST, OWN],
        5.0,
    ),
    "one taint that is not covered": ([Toleration(NOT_READY, "Exists")], [LOST, OWN], 0.0),
}


@pytest.mark.parametrize(("tolerations", "taints", "stay"), STAYS.values(), ids=STAYS)
def test_how_long_a_pod_stays(tolerations: list[Any], taints: list[Any], stay: float | None) -> None:
    """In seconds; None for ever."""
    assert stay_seconds(tolerations, taints) == stay
