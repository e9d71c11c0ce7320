"""A hostPath shows the node where the node is only a part of the machine."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from embedded.cgroups.layout import Layout
from embedded.node.volumes.host_view import HostView, Mount

V1 = Layout(PurePosixPath("/sys/fs/cgroup"), "n", ("cpu", "memory"))
V2 = Layout(PurePosixPath("/sys/fs/cgroup"), "n", ("cpu", "memory"), version=2)
SHOWN = Path("/run/node/view")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        pytest.param("/etc", "/etc", id="there"),
        pytest.param("/nonesuch/dir", "{run}/host/nonesuch/dir", id="not there"),
        pytest.param("/run/sublet", "{run}/host/run/sublet", id="an agent's socket"),
        pytest.param("/var/lib/sublet/agent.json", "{run}/host/var/lib/sublet/agent.json", id="an agent's state"),
        pytest.param("/var/lib/kubelet", "{run}/kubelet", id="the kubelet's"),
        pytest.param("/var/lib/kubelet/pods", "{run}/kubelet/pods", id="below the kubelet's"),
    ],
)
def test_place(tmp_path: Path, path: str, place: str) -> None:
    """The machine's own, or the node's."""
    assert str(HostView(tmp_path, V1).place(Path(path))) == place.format(run=tmp_path)


@pytest.mark.parametrize(
    ("layout", "shown", "path", "target", "expected"),
    [
        pytest.param(V2, None, "/sys/fs/cgroup", "/c", {"/c": "/sys/fs/cgroup/sublet-n"}, id="cgroups, v2"),
        pytest.param(
            V1,
            None,
            "/sys/fs/cgroup",
            "/c",
            {"/c": "", "/c/cpu": "/sys/fs/cgroup/cpu/sublet-n", "/c/memory": "/sys/fs/cgroup/memory/sublet-n"},
            id="cgroups, v1",
        ),
        pytest.param(V2, None, "/proc", "/p", {"/p": "/proc"}, id="proc of a whole machine"),
        pytest.param(
            V2,
            SHOWN,
            "/proc",
            "/p",
            {"/p": "/proc", "/p/stat": f"{SHOWN}/proc/stat", "/p/meminfo": f"{SHOWN}/proc/meminfo"},
            id="proc of a part",
        ),
        pytest.param(
            V2,
            SHOWN,
            "/sys",
            "/s",
            {
                "/s": "/sys",
                "/s/devices/system/cpu": f"{SHOWN}/sys/devices/system/cpu",
                "/s/fs/cgroup": "/sys/fs/cgroup/sublet-n",
            },
            id="sys of a part",
        ),
        pytest.param(
            V2,
            SHOWN,
            "/sys",
            "/sys",
            {
                "/sys": "/sys",
                "/sys/devices/system/cpu/online": f"{SHOWN}/sys/devices/system/cpu/online",
                "/sys/fs/cgroup": "/sys/fs/cgroup/sublet-n",
            },
            id="sys at its own place",
        ),
        pytest.param(V1, SHOWN, "/etc", "/e", {"/e": "/etc"}, id="anything else"),
    ],
)
def test_mounts(layout: Layout, shown: Path | None, path: str, target: str, expected: dict[str, str]) -> None:
    """What is mounted where."""
    made = HostView(Path("/run/node"), layout, shown).mounts(Path(path), target, True)
    assert {each.target: each.source for each in made} == expected
    assert all(each.read_only for each in made if each.source), "what is asked for read-only is"


def test_writable() -> None:
    """Cgroups of a pod that may write them."""
    view = HostView(Path("/run/node"), V2)
    assert view.mounts(Path("/sys/fs/cgroup"), "/c", False) == [Mount("/c", "/sys/fs/cgroup/sublet-n", False)]
