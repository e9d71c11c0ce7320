"""ConfigMaps, Secrets and tokens that a pod names, fetched before a container or its volumes need them.

Of objects nothing is kept: a container that starts again sees what they hold then, as with a kubelet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from embedded.node.objects.pod import PodContainer, PodObject


class SourceKind(StrEnum):
    """The words of the kubelet's messages are the lower-case values; `plural` is the resource."""

    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"

    @property
    def plural(self) -> str:
        return f"{self.lower()}s"


class SourceRef(msgspec.Struct, frozen=True):
    kind: SourceKind
    name: str

    def __str__(self) -> str:
        return f'{self.kind.lower()} "{self.name}"'


class TokenRef(msgspec.Struct, frozen=True):
    """What a projected volume asks for; no audience is the API server's."""

    audience: str
    expiration_seconds: int


class VolumeNotReady(Exception):
    """A volume cannot be set up now; the text is the kubelet's FailedMount."""

    def __init__(self, volume: str, what: str) -> None:
        super().__init__(f'MountVolume.SetUp failed for volume "{volume}" : {what}')


class Sources(msgspec.Struct, frozen=True):
    """Key → bytes of every object that exists, and the tokens of the pod's account."""

    found: Mapping[SourceRef, Mapping[str, bytes]] = {}
    tokens: Mapping[TokenRef, bytes] = {}

    def get(self, ref: SourceRef) -> Mapping[str, bytes] | None:
        return self.found.get(ref)


Read = Callable[[SourceRef], Awaitable[Mapping[str, bytes] | None]]


async def gather(refs: Iterable[SourceRef], read: Read) -> Sources:
    """One read per object. Raises KubernetesFault when the API server does not answer."""
    found = {}
    for ref in sorted(set(refs), key=str):
        values = await read(ref)
        if values is not None:
            found[ref] = values
    return Sources(found)


def of_container(container: PodContainer) -> Iterator[SourceRef]:
    """What `env` and `envFrom` name."""
    for source in container.env_from or []:
        yield from _refs(source, "configMapRef", "secretRef")
    for variable in container.env or []:
        yield from _refs(variable.value_from or {}, "configMapKeyRef", "secretKeyRef")


def of_volumes(pod: PodObject) -> Iterator[SourceRef]:
    """What the pod's volumes name, projected ones included."""
    for volume in pod.spec.volumes or []:
        for source in (volume, *(volume.get("projected") or {}).get("sources", [])):
            yield from _refs(source, "configMap", "secret")


def ref_of(kind: SourceKind, source: Mapping[str, Any]) -> SourceRef:
    """A volume names its Secret `secretName`; everything else says `name`."""
    return SourceRef(kind, str(source.get("secretName") or source.get("name") or ""))


def _refs(source: Mapping[str, Any], config_map: str, secret: str) -> Iterator[SourceRef]:
    if isinstance(source.get(config_map), dict):
        yield ref_of(SourceKind.CONFIG_MAP, source[config_map])
    if isinstance(source.get(secret), dict):
        yield ref_of(SourceKind.SECRET, source[secret])
