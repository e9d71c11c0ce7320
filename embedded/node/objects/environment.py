"""A container's environment, and `$(VAR)` in its command: the kubelet's rules.

Source: kubernetes third_party/forked/golang/expansion/expand.go and pkg/kubelet/kubelet_pods.go
(makeEnvironmentVariables). Nothing of the node's own environment passes on; of service variables there are those of
the API server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from embedded.node.objects.pod import HOST_ADDRESS, EnvVar, PodContainer, PodObject
from embedded.node.objects.pod_resources import limits, requests
from embedded.node.objects.sources import SourceKind, SourceRef, Sources, ref_of
from embedded.quantity import parse_millis
from embedded.resources import CPU, ResourceVector

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_MAP_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]\Z")


class Unsupported(Exception):
    """The container asks for something this node cannot give now; the text goes into its waiting message."""


class EnvironmentSources(msgspec.Struct, frozen=True):
    """What an environment is made of besides the pod: PATH, HOME, fetched objects, and what the node has.

    `api_server` has the variables by which clients in a pod find it.
    """

    search_path: str
    home: str
    sources: Sources = Sources()
    allocatable: ResourceVector = ResourceVector()
    api_server: Mapping[str, str] = {}


def api_server_variables(url: str) -> dict[str, str]:
    """By which clients inside a pod find the API server: where it really is, since no Service address leads there."""
    where = urlsplit(url)
    port = where.port or (443 if where.scheme == "https" else 80)
    return {"KUBERNETES_SERVICE_HOST": where.hostname or HOST_ADDRESS, "KUBERNETES_SERVICE_PORT": str(port)}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` → its value, `$$(NAME)` → `$(NAME)`; an unknown name stays as written."""

    def value(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$"
        return variables.get(match.group(1), match.group())

    return _REFERENCE.sub(value, text)


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    return [expand(text, variables) for text in texts]


def given(pod: PodObject, around: EnvironmentSources) -> dict[str, str]:
    """What every container has, unless it declares another: only its processes see these, no `$(NAME)` does."""
    return {"PATH": around.search_path, "HOME": around.home, "LANG": "C.UTF-8", "HOSTNAME": hostname(pod)}


def hostname(pod: PodObject) -> str:
    """Of the pod, at most 63 characters."""
    return (pod.spec.node_name if pod.spec.host_network else pod.spec.hostname or pod.metadata.name)[:63].rstrip("-.")


def declared(pod: PodObject, container: PodContainer, around: EnvironmentSources) -> dict[str, str]:
    """The API server's variables, then those of env and envFrom. Raises Unsupported in the kubelet's words."""
    variables: dict[str, str] = dict(around.api_server)
    for source in container.env_from or []:
        variables |= _whole(source, around.sources)
    for variable in container.env or []:
        value = _value(pod, container, variable, variables, around)
        if value is not None:
            variables[variable.name] = value
    return variables


def _whole(source: Mapping[str, Any], sources: Sources) -> dict[str, str]:
    """One entry of envFrom: every key of the object, with the entry's prefix."""
    prefix = str(source.get("prefix") or "")
    for name, kind in (("configMapRef", SourceKind.CONFIG_MAP), ("secretRef", SourceKind.SECRET)):
        named = source.get(name)
        if isinstance(named, dict):
            values = _object(ref_of(kind, named), sources, optional=bool(named.get("optional"))) or {}
            return {prefix + key: value.decode(errors="replace") for key, value in values.items()}
    return {}


def _value(
    pod: PodObject, container: PodContainer, variable: EnvVar, declared: Mapping[str, str], around: EnvironmentSources
) -> str | None:
    if not variable.value_from:
        return expand(variable.value or "", declared)
    kind, source = next(iter(variable.value_from.items()))
    if kind == "fieldRef":
        return field(pod, str(source.get("fieldPath", "")))
    if kind == "resourceFieldRef":
        return resource_field(pod, container, source, around.allocatable)
    if kind in ("configMapKeyRef", "secretKeyRef"):
        which = SourceKind.CONFIG_MAP if kind == "configMapKeyRef" else SourceKind.SECRET
        return _key(pod, ref_of(which, source), source, around.sources)
    raise Unsupported(f"env {variable.name}: valueFrom.{kind} is not supported by the process node")


def _key(pod: PodObject, ref: SourceRef, source: Mapping[str, Any], sources: Sources) -> str | None:
    optional, key = bool(source.get("optional")), str(source.get("key", ""))
    values = _object(ref, sources, optional=optional)
    if values is not None and key in values:
        return values[key].decode(errors="replace")
    if optional:
        return None
    raise Unsupported(f"couldn't find key {key} in {ref.kind} {pod.metadata.namespace}/{ref.name}")


def _object(ref: SourceRef, sources: Sources, *, optional: bool) -> Mapping[str, bytes] | None:
    values = sources.get(ref)
    if values is None and not optional:
        raise Unsupported(f"{ref} not found")
    return values


def field(pod: PodObject, path: str) -> str:
    """The downward API's value of a field. Raises Unsupported."""
    of_map = _MAP_FIELD.match(path)
    if of_map:
        values = pod.metadata.labels if of_map[1] == "labels" else pod.metadata.annotations
        return (values or {}).get(of_map[2], "")
    known = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "metadata.labels": _lines(pod.metadata.labels),
        "metadata.annotations": _lines(pod.metadata.annotations),
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.podIP": pod.address,
        "status.podIPs": pod.address,
        "status.hostIP": pod.host_address,
        "status.hostIPs": pod.host_address,
    }
    if path not in known:
        raise Unsupported(f"fieldRef {path} is not supported; known are {', '.join(known)} and metadata.labels['…']")
    return known[path]


def resource_field(
    pod: PodObject, container: PodContainer, source: Mapping[str, Any], allocatable: ResourceVector
) -> str:
    """A request or limit in units of the divisor, rounded up; a limit nobody set is what the node has."""
    name = str(source.get("containerName") or container.name)
    named = next((each for each in _containers(pod) if each.name == name), None)
    which, _, resource = str(source.get("resource", "")).partition(".")
    if named is None or which not in ("limits", "requests"):
        raise Unsupported(f"resourceFieldRef {source.get('resource')} of container {name} is not known")
    amount = limits(named)[resource] or allocatable[resource] if which == "limits" else requests(named)[resource]
    amount_millis = amount if resource == CPU else amount * 1000
    divisor_millis = parse_millis(source.get("divisor") or 1) or 1000
    return str(-(-amount_millis // divisor_millis))


def _containers(pod: PodObject) -> Iterator[PodContainer]:
    yield from pod.spec.containers
    yield from pod.spec.init_containers or []


def _lines(values: Mapping[str, str] | None) -> str:
    """Labels as a file of the downward API has them."""
    return "".join(f'{key}="{_escaped(value)}"\n' for key, value in sorted((values or {}).items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
