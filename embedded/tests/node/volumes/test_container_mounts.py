"""Where a container sees its volumes follows from its mounts."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from embedded.cgroups.layout import Layout
from embedded.node.objects.environment import Unsupported
from embedded.node.volumes import container_mounts
from embedded.node.volumes.host_view import HostView, Mount
from embedded.node.volumes.volumes import Places


def wanted(pod: Any, tmp_path: Path, *mounts: dict[str, Any], host: str = "/data") -> tuple[Mount, ...]:
    declared = [
        {"name": "data", "emptyDir": {}},
        {"name": "cfg", "configMap": {"name": "c"}},
        {"name": "host", "hostPath": {"path": host}},
    ]
    built = pod(volumes=declared, containers=[{"volumeMounts": list(mounts)}])
    places, container = Places(tmp_path), built.spec.containers[0]
    made = container_mounts.mounts(built, container, places, {"NAME": "x"})
    container_mounts.make_sources(built, container, places, {"NAME": "x"})
    return made


def test_mounts(pod: Any, tmp_path: Path) -> None:
    """Sources and modes; written volumes are read-only."""
    made = wanted(
        pod,
        tmp_path,
        {"name": "data", "mountPath": "/data/"},
        {"name": "data", "mountPath": "/logs", "subPathExpr": "logs/$(NAME)", "readOnly": True},
        {"name": "cfg", "mountPath": "/cfg"},
    )
    assert made == (
        Mount("/data", f"{tmp_path}/volumes/kubernetes.io~empty-dir/data", False),
        Mount("/logs", f"{tmp_path}/volumes/kubernetes.io~empty-dir/data/logs/x", True),
        Mount("/cfg", f"{tmp_path}/cfg", True),
    )
    assert (tmp_path / "volumes/kubernetes.io~empty-dir/data/logs/x").is_dir()


@pytest.mark.parametrize("sub_path", ["../x", "/etc", "link/x"])
def test_sub_path_stays_inside(pod: Any, tmp_path: Path, sub_path: str) -> None:
    """Neither dots nor an absolute path nor a link leads out of the volume."""
    volume = Places(tmp_path).emptied("data")
    volume.mkdir(parents=True)
    (volume / "link").symlink_to("/tmp")
    with pytest.raises(Unsupported):
        wanted(pod, tmp_path, {"name": "data", "mountPath": "/d", "subPath": sub_path})


@pytest.mark.parametrize(
    ("mount", "accepted"),
    [
        pytest.param({"name": "host", "mountPath": "/data"}, True, id="host path at its own place"),
        pytest.param({"name": "host", "mountPath": "/other"}, False, id="host path elsewhere"),
        pytest.param({"name": "host", "mountPath": "/data", "readOnly": True}, False, id="read-only needs a mount"),
        pytest.param({"name": "data", "mountPath": "/dev/shm"}, True, id="the machine's own shared memory"),
        pytest.param({"name": "cfg", "mountPath": "/cfg"}, False, id="config map"),
    ],
)
def test_without_mount_namespaces(pod: Any, tmp_path: Path, mount: dict[str, Any], accepted: bool) -> None:
    """Only what is in its place already can be had; the refusal names both places."""
    host = tmp_path / "data"
    mount = {**mount, "mountPath": str(host) if mount["mountPath"] == "/data" else mount["mountPath"]}
    message = container_mounts.unplaceable(wanted(pod, tmp_path / "v", mount, host=str(host)), Places(tmp_path / "v"))
    assert (message is None) is accepted
    assert accepted or (message and mount["mountPath"] in message and "hostPath volume" in message)


@pytest.mark.parametrize(
    ("container", "uses"),
    [
        ({}, False),
        ({"command": ["sh", "-c", "echo done > /dev/termination-log"]}, True),
        ({"env": [{"name": "LOG", "value": "/dev/termination-log"}]}, True),
        ({"terminationMessagePath": "/tmp/message"}, True),
    ],
)
def test_uses_message(pod: Any, container: dict[str, Any], uses: bool) -> None:
    """A container that seems to write a termination message gets a file for it."""
    assert container_mounts.uses_message(pod(containers=[container]).spec.containers[0]) is uses


def test_host_path() -> None:
    """The longest mount that contains a path says where it is on this machine."""
    mounts = (Mount("/data", "/v/data", False), Mount("/data/sub", "/v/sub", False))
    places = {
        path: str(container_mounts.host_path(Path(path), mounts)) for path in ("/data/x", "/data/sub/x", "/database")
    }
    assert places == {"/data/x": "/v/data/x", "/data/sub/x": "/v/sub/x", "/database": "/database"}


TOKEN = {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


@pytest.mark.parametrize(
    ("main", "volumes_left", "mounts_left"),
    [
        pytest.param({}, ["data"], [["data"], ["data"]], id="nobody reads it"),
        pytest.param(
            {"args": ["cat /var/run/secrets/kubernetes.io/serviceaccount/token"]},
            ["data", "kube-api-access-x"],
            [["data", "kube-api-access-x"], ["data"]],
            id="one speaks of it",
        ),
        pytest.param(
            {"image": "stored:1"},
            ["data", "kube-api-access-x"],
            [["data", "kube-api-access-x"], ["data"]],
            id="one has an image",
        ),
    ],
)
def test_unread_tokens(pod: Any, main: dict[str, Any], volumes_left: list[str], mounts_left: list[list[str]]) -> None:
    """The volume of the token stays where a container has an image or speaks of its directory."""
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}, TOKEN]}
    declared = [{"name": "data", "emptyDir": {}}, {"name": "kube-api-access-x", "projected": {"sources": []}}]
    built = pod(volumes=declared, containers=[{**mounts, **main}, {"name": "other", **mounts}])
    left = container_mounts.without_unread_tokens(built, lambda container: container.image == "stored:1")
    assert [each["name"] for each in left.spec.volumes or []] == volumes_left
    assert [[mount.name for mount in each.volume_mounts or []] for each in left.spec.containers] == mounts_left


@pytest.mark.parametrize(
    ("mount", "viewed", "expected"),
    [
        pytest.param({}, True, {"/p": "/proc", "/p/stat": "/v/proc/stat", "/p/meminfo": "/v/proc/meminfo"}, id="seen"),
        pytest.param({}, False, {"/p": "/proc"}, id="on the machine's files"),
        pytest.param({"subPath": "sys"}, True, {"/p": "/proc/sys"}, id="a part"),
    ],
)
def test_view(pod: Any, mount: dict[str, Any], viewed: bool, expected: dict[str, str]) -> None:
    """A hostPath as a whole shows a container with an image its node."""
    view = HostView(Path("/run"), Layout(PurePosixPath("/sys/fs/cgroup"), "n"), Path("/v"))
    mounts = [{"name": "proc", "mountPath": "/p", **mount}]
    built = pod(volumes=[{"name": "proc", "hostPath": {"path": "/proc"}}], containers=[{"volumeMounts": mounts}])
    places = Places(Path("/run/volumes/u-1"), view)
    made = container_mounts.mounts(built, built.spec.containers[0], places, {}, view if viewed else None)
    assert {each.target: each.source for each in made} == expected
