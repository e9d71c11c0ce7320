"""The table of control files: one owner for each file of a place."""

from __future__ import annotations

import pytest

from agent.core.observe.knob_table import TABLE, Form, KnobRow, More, Place, Strategy, owner_of, place_of, row_of
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Knob

CGROUPFS = Layout("/kubelet/kubepods")
SYSTEMD = Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD)
PLACES: dict[str, tuple[Layout, str, Place | None]] = {
    "kubepods": (CGROUPFS, "/kubelet/kubepods", Place.KUBEPODS),
    "the burstable root": (CGROUPFS, "/kubelet/kubepods/burstable", Place.BURSTABLE),
    "the best-effort root": (CGROUPFS, "/kubelet/kubepods/besteffort", Place.BEST_EFFORT),
    "a Guaranteed pod": (CGROUPFS, "/kubelet/kubepods/podx", Place.ONLINE_POD),
    "its container": (CGROUPFS, "/kubelet/kubepods/podx/c", Place.ONLINE_CONTAINER),
    "a Burstable pod": (CGROUPFS, "/kubelet/kubepods/burstable/podx", Place.ONLINE_POD),
    "a batch pod": (CGROUPFS, "/kubelet/kubepods/besteffort/podx", Place.BEST_EFFORT_POD),
    "below its container": (CGROUPFS, "/kubelet/kubepods/besteffort/podx/c/deeper", Place.BEST_EFFORT_CONTAINER),
    "a slice": (SYSTEMD, "/kubepods.slice/kubepods-besteffort.slice", Place.BEST_EFFORT),
    "a scope": (
        SYSTEMD,
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podx.slice/cri-containerd-c.scope",
        Place.ONLINE_CONTAINER,
    ),
    "outside": (CGROUPFS, "/kubelet", None),
    "a name that begins alike": (CGROUPFS, "/kubelet/kubepods2/podx", None),
}


@pytest.mark.parametrize(("layout", "cgroup", "expected"), PLACES.values(), ids=PLACES.keys())
def test_place(layout: Layout, cgroup: str, expected: Place | None) -> None:
    """Where a cgroup is follows from its path."""
    assert place_of(layout, cgroup) is expected


def test_each_file_has_one_row() -> None:
    """So that a file of a place has one owner; every strategy owns something."""
    keys = [(row.controller, row.file) for row in TABLE]
    assert len(keys) == len(set(keys))
    assert {owner for row in TABLE for owner in row.owners.values()} == set(Strategy)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"v{row.version} {row.file}")
def test_rows(row: KnobRow) -> None:
    """What can be unlimited says how; bytes alone are reclaimed; what lower values loosen is a number or bytes."""
    assert row_of(Knob("/a", row.controller, row.file)) is row
    assert row.neutral is not None or row.form in (Form.NUMBER, Form.CPUS, Form.SIGNED)
    assert not row.reclaims or row.form in (Form.BYTES, Form.BYTES_V1)
    assert row.more is More.HIGHER or row.form in (Form.NUMBER, Form.BYTES, Form.PERCENT, Form.SIGNED)


def test_owner() -> None:
    """By file and place; none where nobody writes."""
    root, pod, online = (f"/kubelet/kubepods/{path}" for path in ("besteffort", "besteffort/podx", "podx"))
    assert owner_of(CGROUPFS, Knob(root, "cpu", "cpu.cfs_quota_us")) is Strategy.CPU_SUPPRESS
    assert owner_of(CGROUPFS, Knob(pod, "cpu", "cpu.cfs_quota_us")) is Strategy.BATCH_RESOURCES
    assert owner_of(CGROUPFS, Knob(online, "cpu", "cpu.cfs_quota_us")) is Strategy.CPU_BURST
    assert owner_of(CGROUPFS, Knob(root, "cpu", "cpu.stat")) is None
    assert owner_of(CGROUPFS, Knob("/", "cpu", "cpu.cfs_quota_us")) is None


def test_what_stays() -> None:
    """Ceilings of best effort outlive the wish for them; own CPUs go with the pod."""
    assert {owner for owner in Strategy if owner.stays} == {
        Strategy.CPU_SUPPRESS,
        Strategy.CPU_WEIGHT,
        Strategy.BATCH_RESOURCES,
        Strategy.OWN_CPUS,
    }


def test_a_file_that_is_not_ours() -> None:
    """Nothing reads or writes it."""
    with pytest.raises(ValueError, match="no control file of ours"):
        row_of(Knob("/a", "cpu", "cpu.stat"))
