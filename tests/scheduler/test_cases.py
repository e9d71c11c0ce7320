"""Every case of tests/scheduler/cases, decided by the cycle that the scheduler runs; case_manifests has the words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from case_manifests import NOW, full, manifests

from cli.simulate.cluster_objects import CLUSTER_KINDS
from cli.simulate.cluster_run import Extent, decide
from cli.simulate.manifests import Manifests
from scheduler.settings import SchedulerSettings
from view.cluster_outcome import Outcome

FOLDER = Path(__file__).parent / "cases"


def cases() -> Iterator[Any]:
    for file in sorted(FOLDER.glob("*.yaml")):
        for case in yaml.safe_load(file.read_text()):
            yield pytest.param(case, id=f"{file.stem}::{case['name']}")


def outcome(case: dict[str, Any]) -> Outcome:
    found = Manifests(CLUSTER_KINDS)
    for document in manifests(case["given"]):
        found.add(document, "case")
    assert not found.skipped
    settings = msgspec.convert(case.get("settings", {}), SchedulerSettings)
    return decide(found, NOW, settings, Extent(case.get("settle", False)))


@pytest.mark.parametrize("case", list(cases()))
def test_case(case: dict[str, Any]) -> None:
    """What is expected is there in full; what a case does not speak of is left open."""
    decided, expected = outcome(case), case["expect"]
    found = {
        "placements": {row.pod: row.node for row in decided.placements},
        "nominations": {row.pod: row.node for row in decided.nominations},
        "victims": {row.pod: row.preemptor for row in decided.victims},
        "pending": {row.pod: row.message.partition(" preemption: ")[0] for row in decided.pending},
        "preemption": {row.pod: row.message.partition(" preemption: ")[2] for row in decided.pending},
        "reasons": {row.pod: row.reason for row in decided.pending},
        "gangs": {row.name: f"{row.phase} {row.scheduled}/{row.min_member}" for row in decided.gangs},
    }
    wanted = {key: {full(name): value for name, value in expected[key].items()} for key in expected.keys() & found}
    assert {key: found[key] for key in wanted} == wanted
    counted = {
        "placed": len(decided.placements),
        "evicted": len(decided.victims),
        "used": len({row.node for row in decided.placements}),
    }
    assert {key: counted[key] for key in expected.keys() & counted} == {
        key: expected[key] for key in expected.keys() & counted
    }
    assert expected.keys() <= found.keys() | counted.keys()


def test_there_are_enough_cases() -> None:
    """Names are unique within a file."""
    ids = [param.id for param in cases()]
    assert len(ids) >= 150 and len(set(ids)) == len(ids)
