"""Who makes the kubelet's cgroups."""

from __future__ import annotations

from enum import StrEnum


class CgroupDriver(StrEnum):
    """It decides how their directories are named."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"
