"""Which volumes a container may mount when there are no mount namespaces: those that are already where they belong."""

from __future__ import annotations

from typing import Any

from local.node.podobject import PodContainer, PodObject, VolumeMount

_SHARED_MEMORY = "/dev/shm"


def refusal(pod: PodObject, container: PodContainer) -> str | None:
    """The reason why the container cannot have its mounts, or None.

    Accepted are a hostPath mounted at its own path, an emptyDir at /dev/shm (the machine's own), and the token
    volume that API servers add by themselves, which is left out.
    """
    volumes = {str(volume.get("name", "")): volume for volume in pod.spec.volumes or []}
    for mount in container.volume_mounts or []:
        if not _in_place(mount, volumes.get(mount.name, {})):
            return (
                f"volume {mount.name} cannot be mounted at {mount.mount_path}: the process node has no mount "
                "namespaces; use a hostPath volume mounted at its own path"
            )
    return None


def _in_place(mount: VolumeMount, volume: dict[str, Any]) -> bool:
    if mount.name.startswith("kube-api-access-"):
        return True
    if "emptyDir" in volume:
        return mount.mount_path == _SHARED_MEMORY and not mount.sub_path
    path = str((volume.get("hostPath") or {}).get("path", ""))
    whole = f"{path.rstrip('/')}/{mount.sub_path}" if mount.sub_path else path
    return bool(path) and whole.rstrip("/") == mount.mount_path.rstrip("/")
