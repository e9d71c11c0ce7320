"""Volumes become directories and files with the kubelet's rules; where a container sees them follows from its mounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.node import volumes
from local.node.environment import Unsupported
from local.node.sources import SourceKind, SourceRef, Sources
from local.node.volumes import Mount, Places, VolumeNotReady
from model.resources import ResourceVector

SOURCES = Sources(
    {
        SourceRef(SourceKind.CONFIG_MAP, "c"): {"a": b"1", "b": b"2"},
        SourceRef(SourceKind.SECRET, "s"): {"key": b"hidden"},
    }
)
NOTHING = ResourceVector()


def contents(pod: Any, volume: dict[str, Any]) -> dict[str, tuple[bytes, int]]:
    built = pod(metadata={"labels": {"app": 'a"b', "tier": "x"}})
    files = volumes.files(built, {"name": "v", **volume}, SOURCES, NOTHING)
    return {str(each.path): (each.content, each.mode) for each in files}


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param({"configMap": {"name": "c"}}, {"a": (b"1", 0o644), "b": (b"2", 0o644)}, id="config map"),
        pytest.param(
            {"secret": {"secretName": "s", "defaultMode": 0o400}}, {"key": (b"hidden", 0o400)}, id="secret with a mode"
        ),
        pytest.param(
            {"configMap": {"name": "c", "items": [{"key": "a", "path": "sub/x", "mode": 0o755}]}},
            {"sub/x": (b"1", 0o755)},
            id="chosen items",
        ),
        pytest.param({"configMap": {"name": "none", "optional": True}}, {}, id="optional and absent"),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"labels": (b'app="a\\"b"\ntier="x"\n', 0o644)},
            id="downward API",
        ),
        pytest.param(
            {"projected": {"sources": [
                {"secret": {"name": "s"}},
                {"configMap": {"name": "c", "items": [{"key": "b", "path": "two"}]}},
                {"serviceAccountToken": {"path": "token"}},
            ]}},
            {"key": (b"hidden", 0o644), "two": (b"2", 0o644)},
            id="projected, tokens left out",
        ),
    ],
)  # fmt: skip
def test_files(pod: Any, volume: dict[str, Any], expected: dict[str, tuple[bytes, int]]) -> None:
    """Paths, contents and modes."""
    assert contents(pod, volume) == expected


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param({"configMap": {"name": "none"}}, 'configmap "none" not found', id="no config map"),
        pytest.param({"secret": {"secretName": "none"}}, 'secret "none" not found', id="no secret"),
        pytest.param(
            {"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}},
            "configmap references non-existent config key: z",
            id="no key",
        ),
        pytest.param(
            {"configMap": {"name": "c", "items": [{"key": "a", "path": "../../etc/passwd"}]}},
            "must not contain",
            id="a way out",
        ),
    ],
)
def test_not_ready(pod: Any, volume: dict[str, Any], message: str) -> None:
    """The kubelet's FailedMount."""
    with pytest.raises(VolumeNotReady, match=f'MountVolume.SetUp failed for volume "v" : .*{message}'):
        contents(pod, volume)


def test_set_up(pod: Any, tmp_path: Path) -> None:
    """All of a pod's volumes; the token volume is left out."""
    (tmp_path / "there").mkdir()
    built = pod(
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "cfg", "configMap": {"name": "c", "defaultMode": 0o500}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "there"), "type": "Directory"}},
            {"name": "made", "hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
            {"name": "file", "hostPath": {"path": str(tmp_path / "file"), "type": "FileOrCreate"}},
            {"name": "kube-api-access-x", "projected": {"sources": []}},
        ]
    )
    places = Places(tmp_path / "volumes")
    volumes.set_up(built, places, SOURCES, NOTHING)
    assert places.of("data").stat().st_mode & 0o777 == 0o777
    assert (places.of("cfg") / "a").read_text() == "1" and (places.of("cfg") / "a").stat().st_mode & 0o777 == 0o500
    assert (tmp_path / "made").is_dir() and (tmp_path / "file").is_file()
    assert not places.of("kube-api-access-x").exists()


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param({"hostPath": {"path": "/dev/null", "type": "Directory"}}, "is not a directory", id="no directory"),
        pytest.param({"hostPath": {"path": "/none", "type": "File"}}, "/none is not a file", id="nothing there"),
        pytest.param({"hostPath": {"path": "/", "type": "Socket"}}, "is not a socket", id="no socket"),
        pytest.param({"persistentVolumeClaim": {"claimName": "x"}}, "persistentVolumeClaim", id="unsupported"),
    ],
)
def test_unusable(pod: Any, tmp_path: Path, volume: dict[str, Any], message: str) -> None:
    """What the machine does not have, or this node not do, is said."""
    with pytest.raises(VolumeNotReady, match=message):
        volumes.set_up(pod(volumes=[{"name": "v", **volume}]), Places(tmp_path), SOURCES, NOTHING)


def wanted(pod: Any, tmp_path: Path, *mounts: dict[str, Any], host: str = "/data") -> tuple[Mount, ...]:
    declared = [
        {"name": "data", "emptyDir": {}},
        {"name": "cfg", "configMap": {"name": "c"}},
        {"name": "host", "hostPath": {"path": host}},
        {"name": "kube-api-access-x", "projected": {}},
    ]
    built = pod(volumes=declared, containers=[{"volumeMounts": list(mounts)}])
    places, container = Places(tmp_path), built.spec.containers[0]
    made = volumes.mounts(built, container, places, {"NAME": "x"})
    volumes.make_sources(built, container, made, places)
    return made


def test_mounts(pod: Any, tmp_path: Path) -> None:
    """Sources and modes; written volumes are read-only, the token volume is left out."""
    made = wanted(
        pod,
        tmp_path,
        {"name": "data", "mountPath": "/data/"},
        {"name": "data", "mountPath": "/logs", "subPathExpr": "logs/$(NAME)", "readOnly": True},
        {"name": "cfg", "mountPath": "/cfg"},
        {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/x"},
    )
    assert made == (
        Mount("/data", f"{tmp_path}/data", False),
        Mount("/logs", f"{tmp_path}/data/logs/x", True),
        Mount("/cfg", f"{tmp_path}/cfg", True),
    )
    assert (tmp_path / "data" / "logs" / "x").is_dir()


@pytest.mark.parametrize("sub_path", ["../x", "/etc", "link/x"])
def test_sub_path_stays_inside(pod: Any, tmp_path: Path, sub_path: str) -> None:
    """Neither dots nor an absolute path nor a link leads out of the volume."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "link").symlink_to("/tmp")
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
    message = volumes.unplaceable(wanted(pod, tmp_path / "v", mount, host=str(host)), Places(tmp_path / "v"))
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
    assert volumes.uses_message(pod(containers=[container]).spec.containers[0]) is uses


def test_host_path() -> None:
    """The longest mount that contains a path says where it is on this machine."""
    mounts = (Mount("/data", "/v/data", False), Mount("/data/sub", "/v/sub", False))
    places = {path: str(volumes.host_path(Path(path), mounts)) for path in ("/data/x", "/data/sub/x", "/database")}
    assert places == {"/data/x": "/v/data/x", "/data/sub/x": "/v/sub/x", "/database": "/database"}


def test_paths_in_each_others_way(pod: Any, tmp_path: Path) -> None:
    """A file for one item, a directory for another: the kubelet's FailedMount, without this machine's paths."""
    items = [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]
    built = pod(volumes=[{"name": "v", "configMap": {"name": "c", "items": items}}])
    with pytest.raises(VolumeNotReady, match='for volume "v" : cannot write x/y: ') as refused:
        volumes.set_up(built, Places(tmp_path), SOURCES, NOTHING)
    assert str(tmp_path) not in str(refused.value)
