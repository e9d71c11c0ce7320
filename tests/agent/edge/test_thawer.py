"""Who should have ended and is frozen is thawed; who runs is let alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.core.observe.layout import Layout
from agent.core.observe.observation import Places, PodPlace
from agent.edge.thawer import Thawer
from tests.pods import with_fields

POD = "/kubepods/besteffort/podu"
NOW = 1000.0
# what the pod's fields are (None: nobody lists it), whether it is thawed
PODS: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "it runs": ({}, False),
    "it has its grace still": ({"deleting": True, "ends_seconds": NOW + 1}, False),
    "it was to be gone": ({"deleting": True, "ends_seconds": NOW}, True),
    "nobody lists it": (None, True),
}


@pytest.mark.parametrize(("fields", "expected"), PODS.values(), ids=PODS)
def test_whose_processes_are_thawed(tmp_path: Path, build: Any, fields: dict[str, Any] | None, expected: bool) -> None:
    """With all that it made below its own; once in ten ticks."""
    states = [tmp_path / "freezer" / f"{POD}{below}/freezer.state".lstrip("/") for below in ("", "/c/ice")]
    for state in states:
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text("FROZEN\n")
    pod = build.batch("job")
    listed = () if fields is None else (with_fields(pod, **fields),)
    places = Places({} if fields is None else {pod.uid: PodPlace(POD)}, (POD, f"{POD}/c"))
    seen = build.seen(0.0, places=places)
    thawer = Thawer(tmp_path, Layout("/kubepods"))
    for _ in range(10):
        thawer.take(build.result(NOW, observation=seen, facts=build.facts(*listed)))
    assert thawer.idle(20)
    assert {state.read_text().strip() for state in states} == {"THAWED" if expected else "FROZEN"}
    assert thawer.thawed == (2 if expected else 0)


def test_while_pods_are_unknown(tmp_path: Path, build: Any) -> None:
    """Nobody is taken for a pod that nobody lists."""
    state = tmp_path / "freezer" / f"{POD}/freezer.state".lstrip("/")
    state.parent.mkdir(parents=True)
    state.write_text("FROZEN\n")
    thawer, seen = Thawer(tmp_path, Layout("/kubepods")), build.seen(0.0, places=Places({}, (POD,)))
    for _ in range(10):
        thawer.take(build.result(NOW, observation=seen, facts=build.facts(pods=None)))
    assert thawer.idle(20) and state.read_text().strip() == "FROZEN"
