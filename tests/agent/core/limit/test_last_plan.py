"""The plan in a heartbeat: read back as it was written, and refused where anything about it is wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.last_plan import LARGEST_BYTES, LastPlan, understood, written
from agent.core.observe.knobs import quota_knob
from agent.core.observe.layout import CgroupDriver, Layout
from model.decision import Term

LAYOUTS = {
    "v1": Layout("/kubepods"),
    "v2": Layout("/kubepods.slice", version=2, driver=CgroupDriver.SYSTEMD),
}


def plan(layout: Layout, **more: Any) -> BrakePlan:
    root = layout.best_effort
    fields = {
        "base_terms": (Term("capacity", 200_000), Term("margin", -20_000, "a tenth")),
        "base_us": 180_000,
        "floor_us": 2000,
        "ceiling_us": 140_000,
        "deadband_us": 10_000,
        "policy": "adaptive",
        "suffering_us": 30_000,
        "narrow_first": ((quota_knob(layout, f"{root}/pod1/c"), 50_000), (quota_knob(layout, f"{root}/pod1"), 40_000)),
    }
    return BrakePlan(knob=quota_knob(layout, root), **{**fields, **more})


PLANS: dict[str, dict[str, Any]] = {
    "everything": {},
    "no ceiling in force": {"ceiling_us": -1},
    "nobody is heard": {"suffering_us": None, "narrow_first": ()},
    "more used than there is": {"base_terms": (Term("capacity", 1), Term("system used", -9)), "base_us": -8},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("parts", PLANS.values(), ids=PLANS)
def test_read_back(layout: Layout, parts: dict[str, Any]) -> None:
    """All of it, and the time after which somebody else keeps it."""
    made = plan(layout, **parts)
    assert understood(written(made, 1.0), layout) == LastPlan(made, 3.0)


def test_a_full_node() -> None:
    """Every pod that a kubelet may be set to run, each with sidecars, by the longest names there are."""
    layout = Layout("/kubepods.slice", driver=CgroupDriver.SYSTEMD)
    pods = [f"{layout.best_effort}/kubepods-besteffort-pod{'u' * 30}_{number:05d}.slice" for number in range(500)]
    boxes = [f"{pod}/cri-containerd-{number:064d}.scope" for pod in pods for number in range(4)]
    made = plan(layout, narrow_first=tuple((quota_knob(layout, cgroup), 50_000) for cgroup in (*pods, *boxes)))
    assert understood(written(made, 1.0), layout) == LastPlan(made, 3.0)


@pytest.mark.parametrize(("tick_seconds", "silence"), [(0.1, 1.0), (0.5, 1.5), (3.0, 9.0), (60.0, 30.0)])
def test_silence(tick_seconds: float, silence: float) -> None:
    """Three ticks, neither much shorter nor much longer than a start takes."""
    found = understood(written(plan(LAYOUTS["v1"]), tick_seconds), LAYOUTS["v1"])
    assert found is not None and found.silence_seconds == silence


def test_nothing_to_defend() -> None:
    """An empty file, which is no plan."""
    assert written(None, 1.0) == b"" and understood(b"", LAYOUTS["v1"]) is None


ROOT = "/kubepods/besteffort"
WRONG: dict[str, Any] = {
    "another version": {"version": 2},
    "another cgroup": {"cgroup": "/kubepods"},
    "another cgroup's children": {"narrow_first": [["/kubepods/burstable/pod1", 1000]]},
    "children outside": {"narrow_first": [[f"{ROOT}/../burstable", 1000]]},
    "a child's quota of nothing": {"narrow_first": [[f"{ROOT}/pod1", 0]]},
    "a floor the kernel refuses": {"floor_us": 0},
    "a floor beyond all bounds": {"floor_us": 1 << 60},
    "a ceiling of nothing": {"ceiling_us": 0},
    "a ceiling below no ceiling": {"ceiling_us": -2},
    "a deadband that cuts always": {"deadband_us": -1},
    "an emergency of nothing": {"suffering_us": 0},
    "terms beyond all bounds": {"terms": [{"name": "capacity", "value": 1 << 60}]},
    "no silence": {"silence_seconds": 0},
    "silence for good": {"silence_seconds": 1e9},
    "a field nobody knows": {"ceilings": 1},
    "a word for a number": {"floor_us": "2000"},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong(change: dict[str, Any]) -> None:
    """Whatever is not ours to act on is no plan at all."""
    layout = LAYOUTS["v1"]
    document = msgspec.json.decode(written(plan(layout), 1.0))
    assert understood(msgspec.json.encode(document), layout) is not None
    assert understood(msgspec.json.encode(document | change), layout) is None


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (LARGEST_BYTES + 1)])
def test_no_document(content: bytes) -> None:
    """Half a file, or somebody else's."""
    assert understood(content, LAYOUTS["v1"]) is None


def test_of_another_layout() -> None:
    """The node was reinstalled with other cgroups."""
    assert understood(written(plan(LAYOUTS["v1"]), 1.0), LAYOUTS["v2"]) is None
