"""Directory names of both drivers and all runtimes, there and back; which layout a node has."""

from __future__ import annotations

import pytest

from agent.core.observe.layout import CgroupDriver, Layout, detect
from model.fault import KernelFault
from model.qos import KubernetesQoS

GUARANTEED, BURSTABLE, BEST_EFFORT = KubernetesQoS.GUARANTEED, KubernetesQoS.BURSTABLE, KubernetesQoS.BEST_EFFORT
CGROUPFS, SYSTEMD = CgroupDriver.CGROUPFS, CgroupDriver.SYSTEMD
PLAIN = Layout()
NESTED = Layout("/kubelet/kubepods", 2)
SLICES = Layout("/kubepods.slice", 2, SYSTEMD)
NESTED_SLICES = Layout("/kubelet.slice/kubelet-kubepods.slice", 2, SYSTEMD)
UID = "0c7a12f4-1b2c-4d3e-8f90-abcdef012345"
HASH = "b60e92d9c2f3a1e7d8c4f5a6b7c8d9e0"
ID = "3f" * 32
SLICE_UID = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("layout", "qos", "uid", "path"),
    [
        (PLAIN, GUARANTEED, UID, f"/kubepods/pod{UID}"),
        (PLAIN, BURSTABLE, UID, f"/kubepods/burstable/pod{UID}"),
        (PLAIN, BEST_EFFORT, UID, f"/kubepods/besteffort/pod{UID}"),
        (PLAIN, BURSTABLE, HASH, f"/kubepods/burstable/pod{HASH}"),
        (NESTED, BEST_EFFORT, UID, f"/kubelet/kubepods/besteffort/pod{UID}"),
        (SLICES, GUARANTEED, UID, f"/kubepods.slice/kubepods-pod{SLICE_UID}.slice"),
        (SLICES, BURSTABLE, UID, f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE_UID}.slice"),
        (SLICES, BURSTABLE, HASH, f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{HASH}.slice"),
        (
            NESTED_SLICES,
            BEST_EFFORT,
            UID,
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
            f"kubelet-kubepods-besteffort-pod{SLICE_UID}.slice",
        ),
        (
            NESTED_SLICES,
            GUARANTEED,
            UID,
            f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SLICE_UID}.slice",
        ),
    ],
)
def test_pod_directory_there_and_back(layout: Layout, qos: KubernetesQoS, uid: str, path: str) -> None:
    """The name the kubelet gives a pod's cgroup, and the uid read from it again."""
    assert layout.pod(qos, uid) == path
    assert layout.pod_uid_of(path.rsplit("/", 1)[1]) == uid


@pytest.mark.parametrize(
    ("layout", "name"),
    [
        (PLAIN, "burstable"),
        (PLAIN, "besteffort"),
        (PLAIN, "pod"),
        (PLAIN, f"kubepods-pod{SLICE_UID}.slice"),
        (SLICES, "kubepods-burstable.slice"),
        (SLICES, "kubepods-pod.slice"),
        (SLICES, f"pod{UID}"),
        (SLICES, f"system-pod{SLICE_UID}.slice"),
        (NESTED_SLICES, f"kubepods-pod{SLICE_UID}.slice"),
        (NESTED_SLICES, "kubelet-kubepods-besteffort.slice"),
    ],
)
def test_what_is_no_pod(layout: Layout, name: str) -> None:
    """Class directories and other people's slices are none."""
    assert layout.pod_uid_of(name) is None


def test_class_roots() -> None:
    """Where pods of each class are collected."""
    assert (PLAIN.best_effort, PLAIN.burstable) == ("/kubepods/besteffort", "/kubepods/burstable")
    assert SLICES.best_effort == "/kubepods.slice/kubepods-besteffort.slice"
    assert NESTED_SLICES.burstable == "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"


@pytest.mark.parametrize(
    ("layout", "name", "id_"),
    [
        (PLAIN, ID, ID),
        (PLAIN, f"crio-{ID}", ID),
        (PLAIN, f"crio-conmon-{ID}", None),
        (SLICES, f"cri-containerd-{ID}.scope", ID),
        (SLICES, f"crio-{ID}.scope", ID),
        (SLICES, f"crio-conmon-{ID}.scope", None),
        (SLICES, f"docker-{ID}.scope", ID),
        (SLICES, f"pouch-{ID}.scope", ID),
        (SLICES, ID, None),
        (SLICES, "init.scope", None),
        (SLICES, "docker-.scope", None),
    ],
)
def test_container_ids(layout: Layout, name: str, id_: str | None) -> None:
    """Four runtimes; cri-o's monitor is no container."""
    assert layout.container_id_of(name) == id_


@pytest.mark.parametrize(
    ("directories", "root", "driver", "expected"),
    [
        (["/kubepods", "/kubepods/burstable", "/system.slice"], "", None, PLAIN),
        (
            ["/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice"],
            "",
            None,
            Layout("/kubepods.slice", 1, SYSTEMD),
        ),
        (["/kubelet/kubepods", "/kubelet"], "", None, Layout("/kubelet/kubepods")),
        (
            ["/kubelet.slice/kubelet-kubepods.slice", "/kubelet.slice"],
            "",
            None,
            Layout("/kubelet.slice/kubelet-kubepods.slice", 1, SYSTEMD),
        ),
        (["/kubepods", "/kubepods.slice"], "", CGROUPFS, PLAIN),
        (["/kubepods", "/kubepods.slice"], "/kubepods.slice", None, Layout("/kubepods.slice", 1, SYSTEMD)),
        (["/odd", "/kubepods"], "/odd", None, Layout("/odd")),
        (["/odd"], "/odd", SYSTEMD, Layout("/odd", 1, SYSTEMD)),
    ],
)
def test_detect(directories: list[str], root: str, driver: CgroupDriver | None, expected: Layout) -> None:
    """What exists decides; the operator's words win."""
    assert detect("/sys/fs/cgroup/cpuacct", 1, directories, root, driver) == expected


@pytest.mark.parametrize(
    ("directories", "root", "driver", "message"),
    [
        ([], "", None, r"/cg: holds no kubepods cgroup .*--kubepods"),
        (["/user.slice"], "", None, r"holds no kubepods"),
        (["/kubepods"], "", SYSTEMD, r"holds no kubepods"),
        (
            ["/kubepods", "/kubepods.slice"],
            "",
            None,
            r"several kubepods cgroups: /kubepods, /kubepods.slice .*--kubepods",
        ),
        (["/kubepods"], "/other", None, r"/cg/other: does not exist"),
    ],
)
def test_a_node_that_cannot_be_told(
    directories: list[str], root: str, driver: CgroupDriver | None, message: str
) -> None:
    """One line with the place and the fix; never a guess."""
    with pytest.raises(KernelFault, match=message):
        detect("/cg", 1, directories, root, driver)


def test_limits_of_all_pods_stand_above_them() -> None:
    """Those of the root of all cgroups are the machine's."""
    assert Layout("/kubepods").above_pods == ("/kubepods",)
    assert Layout("/a.slice/kubepods.slice").above_pods == ("/a.slice/kubepods.slice", "/a.slice")
