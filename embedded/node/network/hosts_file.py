"""/etc/hosts of containers with an image: the pod's own name, its hostAliases, and every Service that has an address.

There is no cluster DNS: names of Services are found here. Source: kubernetes pkg/kubelet/kubelet_pods.go
(managedHostsFileContent, hostsEntriesFromHostAliases).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from embedded.node.objects.environment import hostname
from embedded.node.objects.pod import PodObject

_DOMAIN = "cluster.local"
_HEAD = (
    "# Kubernetes-managed hosts file.",
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
)


class Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class ServiceSpec(msgspec.Struct, frozen=True):
    cluster_ip: str = msgspec.field(name="clusterIP", default="")


class ServiceObject(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    spec: ServiceSpec = ServiceSpec()


def text(pod: PodObject, services: Iterable[ServiceObject]) -> str:
    """The whole file; Services in the order of their names."""
    name, domain = hostname(pod), pod.spec.subdomain
    full = f"{name}.{domain}.{pod.metadata.namespace}.svc.{_DOMAIN}\t{name}" if domain else name
    own = [f"{pod.address}\t{full}"]
    aliases = [f"{each.ip}\t" + "\t".join(each.hostnames or []) for each in pod.spec.host_aliases or []]
    return "\n".join([*_HEAD, *own, *_services(pod.metadata.namespace, services), *aliases, ""])


def _services(namespace: str, services: Iterable[ServiceObject]) -> Iterator[str]:
    """The short name means the one of the pod's own namespace."""
    for each in sorted(services, key=lambda service: (service.metadata.namespace, service.metadata.name)):
        name, where = each.metadata.name, each.metadata.namespace
        if each.spec.cluster_ip in ("", "None"):
            continue
        short = [name] if where == namespace else []
        names = [*short, f"{name}.{where}", f"{name}.{where}.svc", f"{name}.{where}.svc.{_DOMAIN}"]
        yield f"{each.spec.cluster_ip}\t" + "\t".join(names)


def write_in_place(file: Path, content: str) -> None:
    """The same file for whoever has it mounted, and never an empty one. Raises OSError."""
    encoded = content.encode()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(descriptor, encoded, 0)
        os.ftruncate(descriptor, len(encoded))
    finally:
        os.close(descriptor)
