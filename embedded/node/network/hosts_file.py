"""/etc/hosts of containers: the pod's own name, its hostAliases, every Service that has an address, and each pod that
has a name below a headless Service.

There is no cluster DNS: these names are found here. Containers on the machine's own files get one where their pod has a
`subdomain`, and so asks for such names; it begins with the machine's. Source: kubernetes pkg/kubelet/kubelet_pods.go
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
_SERVICE = "kubernetes.io/service-name"
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


class Endpoint(msgspec.Struct, frozen=True):
    addresses: list[str] | None = None
    hostname: str | None = None


class SliceMetadata(Metadata, frozen=True):
    labels: dict[str, str] | None = None


class EndpointSliceObject(msgspec.Struct, frozen=True):
    """discovery.k8s.io/v1; the name of its Service is in a label."""

    metadata: SliceMetadata = SliceMetadata()
    endpoints: list[Endpoint] | None = None


def text(
    pod: PodObject,
    services: Iterable[ServiceObject],
    slices: Iterable[EndpointSliceObject] = (),
    before: Iterable[str] = _HEAD,
) -> str:
    """The whole file; Services, and pods below them, in the order of their names. `before` are its first lines."""
    name, domain = hostname(pod), pod.spec.subdomain
    full = f"{name}.{domain}.{pod.metadata.namespace}.svc.{_DOMAIN}\t{name}" if domain else name
    own = [f"{pod.address}\t{full}"]
    aliases = [f"{each.ip}\t" + "\t".join(each.hostnames or []) for each in pod.spec.host_aliases or []]
    namespace = pod.metadata.namespace
    return "\n".join([*before, *own, *_services(namespace, services), *_hosts(namespace, slices), *aliases, ""])


def _hosts(namespace: str, slices: Iterable[EndpointSliceObject]) -> Iterator[str]:
    """`pod.service` and longer names; a pod that is not ready has one where its Service publishes it."""
    found = {
        (each.metadata.namespace, service, endpoint.hostname): address
        for each in slices
        if (service := (each.metadata.labels or {}).get(_SERVICE))
        for endpoint in each.endpoints or ()
        if endpoint.hostname
        for address in endpoint.addresses or ()
    }
    for (where, service, name), address in sorted(found.items()):
        short = f"{name}.{service}"
        names = [*([short] if where == namespace else []), *(f"{short}.{end}" for end in _ends(where))]
        yield f"{address}\t" + "\t".join(names)


def _ends(namespace: str) -> tuple[str, ...]:
    return namespace, f"{namespace}.svc", f"{namespace}.svc.{_DOMAIN}"


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
