"""What of a pod's volumes a container wants mounted, and where.

The token that every pod may have is left out for containers on the machine's own files that do not speak of its
directory: it would cost each of them a mount namespace, and none can be kept from reading the user's own credentials
anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from embedded.node.objects.environment import Unsupported, expand
from embedded.node.objects.pod import PodContainer, PodObject, VolumeMount
from embedded.node.volumes.host_view import HostView, Mount
from embedded.node.volumes.volumes import WRITTEN, Places, kind_of, relative

_SHARED_MEMORY = "/dev/shm"
_MESSAGE_PATH = "/dev/termination-log"
_TOKEN_VOLUME = "kube-api-access-"


def without_unread_tokens(pod: PodObject, has_image: Callable[[PodContainer], bool]) -> PodObject:
    """The pod with the volume of its token only where a container has an image, or speaks of the directory."""

    def trimmed(container: PodContainer) -> PodContainer:
        mounts = container.volume_mounts or []
        kept = [each for each in mounts if not _is_token(each.name) or reads(container, each.mount_path)]
        same = len(kept) == len(mounts) or has_image(container)
        return container if same else msgspec.structs.replace(container, volume_mounts=kept)

    if not any(_is_token(str(each.get("name"))) for each in pod.spec.volumes or []):
        return pod
    init, main = ([trimmed(each) for each in some or []] for some in (pod.spec.init_containers, pod.spec.containers))
    used = {mount.name for container in (*init, *main) for mount in container.volume_mounts or []}
    names = ((each, str(each.get("name"))) for each in pod.spec.volumes or [])
    volumes = [each for each, name in names if name in used or not _is_token(name)]
    spec = msgspec.structs.replace(pod.spec, volumes=volumes, containers=main, init_containers=init or None)
    return msgspec.structs.replace(pod, spec=spec)


def _is_token(volume: str) -> bool:
    return volume.startswith(_TOKEN_VOLUME)


def mounts(
    pod: PodObject, container: PodContainer, places: Places, variables: Mapping[str, str], view: HostView | None = None
) -> tuple[Mount, ...]:
    """What the container wants mounted, in its own order; `view` is what hostPath volumes show it.

    Raises Unsupported.
    """
    volumes = {str(volume.get("name", "")): volume for volume in pod.spec.volumes or []}
    return tuple(
        made
        for each in container.volume_mounts or []
        for made in _viewed(_mount(each, volumes.get(each.name, {}), places, variables), volumes.get(each.name), view)
    )


def _mount(mount: VolumeMount, volume: Mapping[str, Any], places: Places, variables: Mapping[str, str]) -> Mount:
    source = _root(mount, volume, places) / _sub_path(mount, variables)
    return Mount(mount.mount_path.rstrip("/") or "/", str(source), bool(mount.read_only) or kind_of(volume) in WRITTEN)


def _viewed(mount: Mount, volume: Mapping[str, Any] | None, view: HostView | None) -> list[Mount]:
    """More than one where a hostPath as a whole shows the node and not the machine."""
    path = ((volume or {}).get("hostPath") or {}).get("path")
    if view is None or path is None or Path(mount.source) != view.place(Path(str(path))):
        return [mount]
    return view.mounts(Path(str(path)), mount.target, mount.read_only)


def _sub_path(mount: VolumeMount, variables: Mapping[str, str]) -> str:
    sub = mount.sub_path or expand(mount.sub_path_expr, variables)
    return str(relative(sub)) if sub else ""


def _root(mount: VolumeMount, volume: Mapping[str, Any], places: Places) -> Path:
    kind = kind_of(volume)
    if kind == "hostPath":
        return places.on_machine(str((volume.get("hostPath") or {}).get("path")))
    return places.emptied(mount.name) if kind == "emptyDir" else places.of(mount.name)


def reads(container: PodContainer, path: str) -> bool:
    """True when its own words speak of a path."""
    words = (*(container.command or []), *(container.args or []), *(each.value or "" for each in container.env or []))
    return any(path in each for each in words)


def uses_message(container: PodContainer) -> bool:
    """True when its own words, or a path that is not the default one, show that it writes a termination message.

    Every container has a terminationMessagePath by default; the price of a mount namespace is paid only for a use.
    """
    path = container.termination_message_path or _MESSAGE_PATH
    return path != _MESSAGE_PATH or reads(container, path)


def message_mount(container: PodContainer, places: Places, restart_count: int) -> Mount:
    """A file of its own for each run's termination message. Raises OSError."""
    file = places.message(container.name, restart_count)
    file.touch()
    file.chmod(0o666)
    return Mount(container.termination_message_path or _MESSAGE_PATH, str(file), False)


def in_place(mount: Mount) -> bool:
    """Needs no mounting: the machine already shows it there, writable as asked."""
    return not mount.read_only and mount.source.rstrip("/") == mount.target


def unplaceable(wanted: tuple[Mount, ...], places: Places) -> str | None:
    """Why the container cannot run without a mount namespace, or None when it can."""
    for each in wanted:
        source = Path(each.source)
        shared_memory = each.target == _SHARED_MEMORY and source == places.emptied(source.name)
        if not shared_memory and not in_place(each):
            return (
                f"volume at {each.source} cannot be mounted at {each.target}: this machine lets the process node make "
                "no mount namespaces; use a hostPath volume mounted at its own path"
            )
    return None


def make_sources(pod: PodObject, container: PodContainer, places: Places, variables: Mapping[str, str]) -> None:
    """Sub-paths that do not exist yet; one that leads out of its volume is refused. Raises Unsupported."""
    volumes = {str(each.get("name")): each for each in pod.spec.volumes or []}
    for mount in container.volume_mounts or []:
        root, sub = _root(mount, volumes.get(mount.name, {}), places), _sub_path(mount, variables)
        if not (root / sub).resolve().is_relative_to(root.resolve()):
            raise Unsupported(
                f'failed to prepare subPath for volumeMount "{mount.name}" of container "{container.name}"'
            )
        if not (root / sub).exists():
            (root / sub).mkdir(parents=True, mode=0o755)


def host_path(path: Path, wanted: tuple[Mount, ...]) -> Path:
    """Where a path of the container is on this machine."""
    inside = [each for each in wanted if each.source and path.is_relative_to(each.target)]
    if not inside:
        return path
    nearest = max(inside, key=lambda each: len(each.target))
    return Path(nearest.source) / path.relative_to(nearest.target)
