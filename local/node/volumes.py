"""A pod's volumes as directories of this machine, and where each container wants them.

    <run dir>/volumes/<pod uid>/<volume name>       emptyDir, configMap, secret, downwardAPI, projected
    <run dir>/volumes/<pod uid>/.messages/<…>       termination message files
    <run dir>/volumes/<pod uid>/.stage              an empty place for mountspace to build on

Files are written once, when the pod begins: a later change of a ConfigMap does not reach them. Tokens of service
accounts are left out: no process of a pod can be kept from reading the user's own credentials anyway.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from local.node.environment import Unsupported, expand, field, resource_field
from local.node.podobject import PodContainer, PodObject, VolumeMount
from local.node.sources import SourceKind, Sources, ref_of
from model.resources import ResourceVector

_FILE_MODE = 0o644
_SHARED_MEMORY = "/dev/shm"
_MESSAGE_PATH = "/dev/termination-log"
_TOKEN_VOLUME = "kube-api-access-"
_WRITTEN = ("configMap", "secret", "downwardAPI", "projected")
_HOST_KINDS = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class VolumeNotReady(Exception):
    """A volume cannot be set up now; the text is the kubelet's FailedMount."""

    def __init__(self, volume: str, what: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {what}')


class File(msgspec.Struct, frozen=True):
    """One file of a written volume; `path` is relative to the volume."""

    path: PurePosixPath
    content: bytes
    mode: int


class Mount(msgspec.Struct, frozen=True):
    """`source` of the machine appears at `target` in the container."""

    target: str
    source: str
    read_only: bool


class Places(msgspec.Struct, frozen=True):
    """Where this pod's volumes are."""

    root: Path

    @property
    def stage(self) -> Path:
        return self.root / ".stage"

    def of(self, volume: str) -> Path:
        return self.root / volume

    def message(self, container: str, restart_count: int) -> Path:
        return self.root / ".messages" / f"{container}.{restart_count}"


def kind_of(volume: Mapping[str, Any]) -> str:
    """`emptyDir`, `configMap`, …: the key that is neither name nor empty."""
    return next((key for key, value in volume.items() if key != "name" and value is not None), "emptyDir")


def memory_limits(pod: PodObject) -> dict[str, str]:
    """Volumes of the medium Memory with their sizeLimit (empty: none)."""
    emptied = {str(each.get("name")): each.get("emptyDir") or {} for each in pod.spec.volumes or []}
    return {
        name: str(volume.get("sizeLimit") or "") for name, volume in emptied.items() if volume.get("medium") == "Memory"
    }


def written(pod: PodObject) -> list[str]:
    """Names of the volumes whose files the node writes."""
    return [str(each.get("name")) for each in pod.spec.volumes or [] if kind_of(each) in _WRITTEN]


def files(pod: PodObject, volume: Mapping[str, Any], sources: Sources, allocatable: ResourceVector) -> Iterator[File]:
    """All files of a configMap, secret, downwardAPI or projected volume. Raises VolumeNotReady."""
    name, kind = str(volume.get("name")), kind_of(volume)
    body = volume.get(kind) or {}
    parts = body.get("sources") or [] if kind == "projected" else [{kind: body}]
    mode = body.get("defaultMode") or _FILE_MODE
    for part in parts:
        try:
            if "downwardAPI" in part:
                yield from _downward(pod, part["downwardAPI"] or {}, mode, allocatable)
            for key, which in (("configMap", SourceKind.CONFIG_MAP), ("secret", SourceKind.SECRET)):
                if key in part:
                    yield from _keyed(which, part[key] or {}, mode, sources)
        except Unsupported as error:
            raise VolumeNotReady(name, str(error)) from None


def _keyed(kind: SourceKind, body: Mapping[str, Any], mode: int, sources: Sources) -> Iterator[File]:
    ref, optional = ref_of(kind, body), bool(body.get("optional"))
    values = sources.get(ref)
    if values is None:
        if optional:
            return
        raise Unsupported(f"{ref} not found")
    for item in body.get("items") or [{"key": key, "path": key} for key in values]:
        key = str(item.get("key"))
        if key in values:
            yield File(_relative(str(item.get("path"))), values[key], item.get("mode") or mode)
        elif not optional:
            words = "config" if kind is SourceKind.CONFIG_MAP else "secret"
            raise Unsupported(f"{kind.lower()} references non-existent {words} key: {key}")


def _downward(pod: PodObject, body: Mapping[str, Any], mode: int, allocatable: ResourceVector) -> Iterator[File]:
    for item in body.get("items") or []:
        if item.get("fieldRef"):
            text = field(pod, str(item["fieldRef"].get("fieldPath", "")))
        else:
            text = resource_field(pod, PodContainer(), item.get("resourceFieldRef") or {}, allocatable)
        yield File(_relative(str(item.get("path"))), text.encode(), item.get("mode") or mode)


def _relative(path: str) -> PurePosixPath:
    made = PurePosixPath(path)
    if made.is_absolute() or ".." in made.parts:
        raise Unsupported(f"path {path!r} must be relative and must not contain '..'")
    return made


def set_up(pod: PodObject, places: Places, sources: Sources, allocatable: ResourceVector) -> None:
    """Make and fill every volume. Raises VolumeNotReady, or OSError where the machine refuses."""
    for directory in (places.stage, places.message("", 0).parent):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for volume in pod.spec.volumes or []:
        name, kind = str(volume.get("name")), kind_of(volume)
        if name.startswith(_TOKEN_VOLUME):
            continue
        if kind in _WRITTEN:
            _write(name, places.of(name), list(files(pod, volume, sources, allocatable)))
        elif kind == "emptyDir":
            _open_to_all(places.of(name))
        elif kind == "hostPath":
            _host_path(name, volume.get("hostPath") or {})
        else:
            raise VolumeNotReady(name, f"the process node has no volumes of type {kind}")


def _write(volume: str, directory: Path, contents: list[File]) -> None:
    directory.mkdir(exist_ok=True, mode=0o755)
    for each in contents:
        file = directory / each.path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(each.content)
            file.chmod(each.mode)
        except OSError as error:
            # One path may be a file for one item and a directory for another.
            raise VolumeNotReady(volume, f"cannot write {each.path}: {error.strerror}") from None


def _open_to_all(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    directory.chmod(0o777)


def _host_path(volume: str, body: Mapping[str, Any]) -> None:
    """Source: kubernetes pkg/volume/hostpath/host_path.go; without a type a missing directory is made (containerd)."""
    path, kind = Path(str(body.get("path"))), str(body.get("type") or "")
    if kind == "FileOrCreate" and not path.exists():
        path.touch(0o644)
    elif kind in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    wanted = _HOST_KINDS.get(kind.removesuffix("OrCreate"))
    if wanted and not (path.exists() and wanted[0](path.stat().st_mode)):
        raise VolumeNotReady(volume, f"hostPath type check failed: {path} is not {wanted[1]}")


def mounts(pod: PodObject, container: PodContainer, places: Places, variables: Mapping[str, str]) -> tuple[Mount, ...]:
    """What the container wants mounted, in its own order. Raises Unsupported."""
    volumes = {str(volume.get("name", "")): volume for volume in pod.spec.volumes or []}
    wanted = (each for each in container.volume_mounts or [] if not each.name.startswith(_TOKEN_VOLUME))
    return tuple(_mount(each, volumes.get(each.name, {}), places, variables) for each in wanted)


def _mount(mount: VolumeMount, volume: Mapping[str, Any], places: Places, variables: Mapping[str, str]) -> Mount:
    kind = kind_of(volume)
    root = Path(str((volume.get("hostPath") or {}).get("path"))) if kind == "hostPath" else places.of(mount.name)
    sub = mount.sub_path or expand(mount.sub_path_expr, variables)
    if sub:
        _relative(sub)
    return Mount(mount.mount_path.rstrip("/") or "/", str(root / sub), bool(mount.read_only) or kind in _WRITTEN)


def uses_message(container: PodContainer) -> bool:
    """True when its own words, or a path that is not the default one, show that it writes a termination message.

    Every container has a terminationMessagePath by default; the price of a mount namespace is paid only for a use.
    """
    path = container.termination_message_path or _MESSAGE_PATH
    words = (*(container.command or []), *(container.args or []), *(each.value or "" for each in container.env or []))
    return path != _MESSAGE_PATH or any(path in each for each in words)


def message_mount(container: PodContainer, places: Places, restart_count: int) -> Mount:
    """A file of its own for each run's termination message. Raises OSError."""
    file = places.message(container.name, restart_count)
    file.touch(0o666)
    return Mount(container.termination_message_path or _MESSAGE_PATH, str(file), False)


def in_place(mount: Mount) -> bool:
    """Needs no mounting: the machine already shows it there, writable as asked."""
    return not mount.read_only and mount.source.rstrip("/") == mount.target


def unplaceable(wanted: tuple[Mount, ...], places: Places) -> str | None:
    """Why the container cannot run without a mount namespace, or None when it can."""
    for each in wanted:
        shared_memory = each.target == _SHARED_MEMORY and Path(each.source).parent == places.root
        if not shared_memory and not in_place(each):
            return (
                f"volume at {each.source} cannot be mounted at {each.target}: this machine lets the process node make "
                "no mount namespaces; use a hostPath volume mounted at its own path"
            )
    return None


def make_sources(pod: PodObject, container: PodContainer, wanted: tuple[Mount, ...], places: Places) -> None:
    """Sub-paths that do not exist yet; one that leads out of its volume is refused. Raises Unsupported."""
    hosts = {str(each.get("name")): each.get("hostPath") for each in pod.spec.volumes or []}
    named = (each for each in container.volume_mounts or [] if not each.name.startswith(_TOKEN_VOLUME))
    for mount, made in zip(named, wanted, strict=True):
        host = hosts.get(mount.name)
        root = Path(str(host["path"])) if host else places.of(mount.name)
        source = Path(made.source)
        if not source.resolve().is_relative_to(root.resolve()):
            raise Unsupported(
                f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
            )
        if not source.exists():
            source.mkdir(parents=True, mode=0o755)


def host_path(path: Path, wanted: tuple[Mount, ...]) -> Path:
    """Where a path of the container is on this machine."""
    inside = [each for each in wanted if path.is_relative_to(each.target)]
    if not inside:
        return path
    nearest = max(inside, key=lambda each: len(each.target))
    return Path(nearest.source) / path.relative_to(nearest.target)
