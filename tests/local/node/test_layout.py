"""Paths are the kubelet's cgroupfs layout, and never leave our prefix."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from local.node.layout import Layout
from model.qos import KubernetesQoS

LAYOUT = Layout(PurePosixPath("/sys/fs/cgroup"), "t1")


@pytest.mark.parametrize(
    ("qos", "path"),
    [
        pytest.param(KubernetesQoS.GUARANTEED, "/sublet-t1/kubepods/podu1/c1", id="guaranteed"),
        pytest.param(KubernetesQoS.BURSTABLE, "/sublet-t1/kubepods/burstable/podu1/c1", id="burstable"),
        pytest.param(KubernetesQoS.BEST_EFFORT, "/sublet-t1/kubepods/besteffort/podu1/c1", id="best effort"),
    ],
)
def test_container_path(qos: KubernetesQoS, path: str) -> None:
    """Each class has the parent that the kubelet gives it."""
    assert LAYOUT.container(qos, "u1", "c1") == path


def test_directory() -> None:
    """A path becomes a directory of one hierarchy, from its mount."""
    assert str(LAYOUT.directory("memory", LAYOUT.kubepods)) == "/sys/fs/cgroup/memory/sublet-t1/kubepods"


@pytest.mark.parametrize("path", ["/", "/kubepods", "/sublet-t10/kubepods", "/sublet-t1x", ""])
def test_foreign_path(path: str) -> None:
    """A path outside the prefix has no directory."""
    with pytest.raises(ValueError, match="outside"):
        LAYOUT.directory("cpu", path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x"])
def test_unsafe_name(name: str) -> None:
    """A container id that is no plain name is refused."""
    with pytest.raises(ValueError, match="cannot name"):
        LAYOUT.container(KubernetesQoS.BURSTABLE, "u1", name)
