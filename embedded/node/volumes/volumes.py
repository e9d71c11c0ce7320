"""A pod's volumes as directories of this machine, and what is in them.

    <run dir>/kubelet/pods/<pod uid>/volumes/kubernetes.io~empty-dir/<volume name>     where a kubelet has it, too
    <run dir>/kubelet/pods/<pod uid>/<volume name>       configMap, secret, downwardAPI, projected
    <run dir>/kubelet/pods/<pod uid>/.messages/<…>       termination message files
    <run dir>/kubelet/pods/<pod uid>/.etc/<…>            hosts, hostname, resolv.conf of containers with an image
    <run dir>/kubelet/pods/<pod uid>/.stage              an empty place for mount_namespace to build on

Files are written when the pod begins and again when what they hold has changed, see atomicwriter.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from embedded.node.images.users import only_user
from embedded.node.objects.environment import Unsupported, field, resource_field
from embedded.node.objects.pod import PodContainer, PodObject, PodSecurity
from embedded.node.objects.sources import SourceKind, Sources, VolumeNotReady, ref_of
from embedded.node.objects.tokens import token_ref
from embedded.node.volumes import atomic_writer
from embedded.node.volumes.atomic_writer import File
from embedded.node.volumes.host_view import HostView
from embedded.resources import ResourceVector

_FILE_MODE = 0o644
WRITTEN = ("configMap", "secret", "downwardAPI", "projected")
_HOST_KINDS = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class Places(msgspec.Struct, frozen=True):
    """Where this pod's volumes are. `host` is what its hostPath volumes show, if not simply the machine."""

    root: Path
    host: HostView | None = None

    @property
    def stage(self) -> Path:
        return self.root / ".stage"

    def of(self, volume: str) -> Path:
        """One whose files the node writes."""
        return self.root / volume

    def emptied(self, volume: str) -> Path:
        """An emptyDir."""
        return self.root / "volumes" / "kubernetes.io~empty-dir" / volume

    @property
    def etc(self) -> Path:
        return self.root / ".etc"

    def on_machine(self, path: str) -> Path:
        """Where a hostPath is."""
        return self.host.place(Path(path)) if self.host else Path(path)

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


def secret(pod: PodObject) -> list[str]:
    """Names of the volumes that hold Secrets or tokens: they belong on no disk."""
    names = []
    for volume in pod.spec.volumes or []:
        parts = [volume, *((volume.get("projected") or {}).get("sources") or [])]
        if any(each.get(key) is not None for each in parts for key in ("secret", "serviceAccountToken")):
            names.append(str(volume.get("name")))
    return names


def written(pod: PodObject) -> list[str]:
    """Names of the volumes whose files the node writes."""
    return [str(each.get("name")) for each in pod.spec.volumes or [] if kind_of(each) in WRITTEN]


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
            if part.get("serviceAccountToken") is not None:
                yield _token(pod, part["serviceAccountToken"], mode, sources)
            for key, which in (("configMap", SourceKind.CONFIG_MAP), ("secret", SourceKind.SECRET)):
                if key in part:
                    yield from _keyed(which, part[key] or {}, mode, sources)
        except Unsupported as error:
            raise VolumeNotReady(name, str(error)) from None


def _token(pod: PodObject, body: Mapping[str, Any], mode: int, sources: Sources) -> File:
    """For its owner alone where that is one. Source: kubernetes pkg/volume/projected/projected.go (collectData)."""
    owner, group = only_user(pod), fs_group(pod)
    text = sources.tokens.get(token_ref(body))
    if text is None:
        raise Unsupported("failed to fetch token")
    return File(relative(str(body.get("path"))), text, mode if owner is None and group is None else 0o600, owner)


def fs_group(pod: PodObject) -> int | None:
    return (pod.spec.security_context or PodSecurity()).fs_group


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
            yield File(relative(str(item.get("path"))), values[key], item.get("mode") or mode)
        elif not optional:
            words = "config" if kind is SourceKind.CONFIG_MAP else "secret"
            raise Unsupported(f"{kind.lower()} references non-existent {words} key: {key}")


def _downward(pod: PodObject, body: Mapping[str, Any], mode: int, allocatable: ResourceVector) -> Iterator[File]:
    for item in body.get("items") or []:
        if item.get("fieldRef"):
            text = field(pod, str(item["fieldRef"].get("fieldPath", "")))
        else:
            text = resource_field(pod, PodContainer(), item.get("resourceFieldRef") or {}, allocatable)
        yield File(relative(str(item.get("path"))), text.encode(), item.get("mode") or mode)


def relative(path: str) -> PurePosixPath:
    """A path inside a volume. Raises Unsupported for one that leads out."""
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
        if kind == "emptyDir":
            _open_to_all(places.emptied(name), fs_group(pod))
        elif kind == "hostPath":
            _host_path(name, volume.get("hostPath") or {}, places)
        elif kind not in WRITTEN:
            raise VolumeNotReady(name, f"the process node has no volumes of type {kind}")
    write_files(pod, places, sources, allocatable)


def write_files(pod: PodObject, places: Places, sources: Sources, allocatable: ResourceVector) -> None:
    """The files of all written volumes as they are to be now. Raises VolumeNotReady."""
    group = fs_group(pod) if os.geteuid() == 0 else None
    for volume in pod.spec.volumes or []:
        if kind_of(volume) not in WRITTEN:
            continue
        name, contents = str(volume.get("name")), list(files(pod, volume, sources, allocatable))
        if os.geteuid() != 0:
            contents = [msgspec.structs.replace(each, owner=None) for each in contents]
        try:
            places.of(name).mkdir(exist_ok=True, mode=0o755)
            atomic_writer.write(places.of(name), contents, group)
        except OSError as error:
            # One path may be a file for one item and a directory for another.
            raise VolumeNotReady(name, f"cannot write {error.filename}: {error.strerror}") from None


def _open_to_all(directory: Path, group: int | None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if group is not None and os.geteuid() == 0:
        os.chown(directory, -1, group)
        directory.chmod(0o2777)
    else:
        directory.chmod(0o777)


def _host_path(volume: str, body: Mapping[str, Any], places: Places) -> None:
    """Source: kubernetes pkg/volume/hostpath/host_path.go; without a type a missing directory is made (containerd)."""
    path, kind = places.on_machine(str(body.get("path"))), str(body.get("type") or "")
    if kind == "FileOrCreate" and not path.exists():
        if places.host:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        path.touch(0o644)
    elif kind in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    wanted = _HOST_KINDS.get(kind.removesuffix("OrCreate"))
    if wanted and not (path.exists() and wanted[0](path.stat().st_mode)):
        raise VolumeNotReady(volume, f"hostPath type check failed: {body.get('path')} is not {wanted[1]}")
