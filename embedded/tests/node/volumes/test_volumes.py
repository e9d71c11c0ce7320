"""Volumes become directories and files with the kubelet's rules; where a container sees them follows from its mounts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embedded.node.objects.sources import SourceKind, SourceRef, Sources, TokenRef, VolumeNotReady
from embedded.node.volumes import volumes
from embedded.node.volumes.volumes import Places
from embedded.resources import ResourceVector

SOURCES = Sources(
    {
        SourceRef(SourceKind.CONFIG_MAP, "c"): {"a": b"1", "b": b"2"},
        SourceRef(SourceKind.SECRET, "s"): {"key": b"hidden"},
    },
    {TokenRef("vault", 600): b"a-token"},
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
                {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}},
            ]}},
            {"key": (b"hidden", 0o644), "two": (b"2", 0o644), "token": (b"a-token", 0o644)},
            id="projected",
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
    """All of a pod's volumes."""
    (tmp_path / "there").mkdir()
    built = pod(
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "cfg", "configMap": {"name": "c", "defaultMode": 0o500}},
            {"name": "host", "hostPath": {"path": str(tmp_path / "there"), "type": "Directory"}},
            {"name": "made", "hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
            {"name": "file", "hostPath": {"path": str(tmp_path / "file"), "type": "FileOrCreate"}},
        ]
    )
    places = Places(tmp_path / "volumes")
    volumes.set_up(built, places, SOURCES, NOTHING)
    assert places.emptied("data").stat().st_mode & 0o777 == 0o777
    assert (places.of("cfg") / "a").read_text() == "1" and (places.of("cfg") / "a").stat().st_mode & 0o777 == 0o500
    assert (tmp_path / "made").is_dir() and (tmp_path / "file").is_file()


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


def test_paths_in_each_others_way(pod: Any, tmp_path: Path) -> None:
    """A file for one item, a directory for another: the kubelet's FailedMount, without this machine's paths."""
    items = [{"key": "a", "path": "x"}, {"key": "b", "path": "x/y"}]
    built = pod(volumes=[{"name": "v", "configMap": {"name": "c", "items": items}}])
    with pytest.raises(VolumeNotReady, match='for volume "v" : cannot write x/y: ') as refused:
        volumes.set_up(built, Places(tmp_path), SOURCES, NOTHING)
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize(
    ("security", "mode", "owner"),
    [
        pytest.param({}, 0o644, None, id="anybody"),
        pytest.param({"fsGroup": 2000}, 0o600, None, id="a group"),
        pytest.param({"runAsUser": 1000}, 0o600, 1000, id="one user"),
    ],
)
def test_token_mode(pod: Any, security: dict[str, Any], mode: int, owner: int | None) -> None:
    """A token is its user's alone where the pod says who that is; the group is added as the volume is written."""
    source = {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 600}}
    volume = {"name": "v", "projected": {"sources": [source]}}
    file = next(volumes.files(pod(securityContext=security), volume, SOURCES, NOTHING))
    assert (file.mode, file.owner, file.content) == (mode, owner, b"a-token")


def test_secret(pod: Any) -> None:
    """Secrets and tokens belong into memory."""
    token = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    declared = [
        {"name": "a", "secret": {"secretName": "s"}},
        {"name": "b", "configMap": {"name": "c"}},
        {"name": "c", **token},
    ]
    assert volumes.secret(pod(volumes=declared)) == ["a", "c"]
