"""Names of pods' cgroups by kubelet and container runtimes, written independently of the agent, which must find them.

Source: kubelet container manager; Koordinator pkg/koordlet/util/system/cgroup_driver*.go; cri-o internal/config/cgmgr.
"""

from __future__ import annotations

from typing import NamedTuple

from agent.core.observe.layout import CgroupDriver
from model.qos import KubernetesQoS

_SCOPES = {"containerd": "cri-containerd", "cri-o": "crio", "docker": "docker"}
_CLASSES = {KubernetesQoS.BURSTABLE: "burstable", KubernetesQoS.BEST_EFFORT: "besteffort"}


class Place(NamedTuple):
    """`root` is the kubepods directory below the mount; a nested one carries its parents' names (systemd)."""

    root: str
    driver: CgroupDriver
    runtime: str


def qos_path(place: Place, qos: KubernetesQoS) -> str:
    """The directory of a QoS class; Guaranteed pods sit directly below the root."""
    name = _CLASSES.get(qos)
    if name is None:
        return place.root
    return f"{place.root}/{_slice_prefix(place.root)}-{name}.slice" if _systemd(place) else f"{place.root}/{name}"


def pod_path(place: Place, qos: KubernetesQoS, uid: str) -> str:
    """A pod's directory; systemd reads a dash as a level, so the uid's become underscores."""
    above = qos_path(place, qos)
    return (
        f"{above}/{_slice_prefix(above)}-pod{uid.replace('-', '_')}.slice" if _systemd(place) else f"{above}/pod{uid}"
    )


def container_path(place: Place, pod: str, container_id: str) -> str:
    """A container's directory below its pod's."""
    if _systemd(place):
        return f"{pod}/{_SCOPES[place.runtime]}-{container_id}.scope"
    return f"{pod}/crio-{container_id}" if place.runtime == "cri-o" else f"{pod}/{container_id}"


def conmon_path(place: Place, pod: str, container_id: str) -> str:
    """Where cri-o puts its monitor process: beside the container, and no container."""
    return f"{pod}/crio-conmon-{container_id}" + (".scope" if _systemd(place) else "")


def _systemd(place: Place) -> bool:
    return place.driver is CgroupDriver.SYSTEMD


def _slice_prefix(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".slice")
