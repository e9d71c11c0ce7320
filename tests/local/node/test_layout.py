"""Paths are the kubelet's, as either driver names them, and never leave our prefix."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from agent.core.observe.layout import CgroupDriver, driver_of
from agent.core.observe.layout import Layout as AgentLayout
from cgroup_fixtures.names import Place, container_path
from local.node.layout import Layout
from model.qos import KubernetesQoS

NAMES = {KubernetesQoS.BURSTABLE: "burstable", KubernetesQoS.BEST_EFFORT: "besteffort"}
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


@pytest.mark.parametrize("qos", KubernetesQoS)
def test_systemd_path(qos: KubernetesQoS) -> None:
    """Every part repeats its parents' names; a dash would be one more level, so the prefix and the uid have none."""
    layout = Layout(PurePosixPath("/sys/fs/cgroup"), "t1-2", driver=CgroupDriver.SYSTEMD)
    top = "/sublet_t1_2.slice/sublet_t1_2-kubepods.slice"
    assert layout.kubepods == top
    named = Place(top, CgroupDriver.SYSTEMD, "containerd")
    pod = layout.pod(qos, "a-b")
    assert layout.container(qos, "a-b", "c1") == container_path(named, pod, "c1")
    assert (
        pod.rsplit("/", 1)[-1]
        == f"sublet_t1_2-kubepods{'' if qos is KubernetesQoS.GUARANTEED else '-' + NAMES[qos]}-poda_b.slice"
    )


@pytest.mark.parametrize("driver", CgroupDriver)
@pytest.mark.parametrize("qos", KubernetesQoS)
def test_the_agent_finds_it(driver: CgroupDriver, qos: KubernetesQoS) -> None:
    """Class, pod and container, from the name of the kubepods directory alone."""
    layout = Layout(PurePosixPath("/sys/fs/cgroup"), "t1-2", version=2, driver=driver)
    seen = AgentLayout(layout.kubepods, 2, driver_of(layout.kubepods))
    assert seen.driver is driver
    assert (seen.class_root(qos), seen.pod(qos, "a-b")) == (layout.qos(qos), layout.pod(qos, "a-b"))
    assert seen.container_id_of(layout.container(qos, "a-b", "c1").rsplit("/", 1)[-1]) == "c1"


def test_one_hierarchy() -> None:
    """On v2 a cgroup is one directory, whatever the controller."""
    layout = Layout(PurePosixPath("/sys/fs/cgroup"), "t1", ("cpu", "memory"), 2)
    assert layout.hierarchies == ("cpu",)
    assert str(layout.directory("memory", layout.kubepods)) == "/sys/fs/cgroup/sublet-t1/kubepods"


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
