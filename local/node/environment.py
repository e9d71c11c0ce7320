"""A container's environment, and `$(VAR)` in its command: the kubelet's rules.

Source: kubernetes third_party/forked/golang/expansion/expand.go. Nothing of the node's own environment passes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from local.node.podobject import EnvVar, PodContainer, PodObject

HOST_ADDRESS = "127.0.0.1"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_MAP_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]\Z")


class Unsupported(Exception):
    """The container asks for something this node cannot give; the text goes into its waiting message."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` → its value, `$$(NAME)` → `$(NAME)`; an unknown name stays as written."""

    def value(match: re.Match[str]) -> str:
        if match.group() == "$$":
            return "$"
        return variables.get(match.group(1), match.group())

    return _REFERENCE.sub(value, text)


def expand_all(texts: Iterable[str], variables: Mapping[str, str]) -> list[str]:
    return [expand(text, variables) for text in texts]


def environment(pod: PodObject, container: PodContainer, search_path: str, home: str) -> dict[str, str]:
    """All variables of the container. Raises Unsupported for a source this node has no access to."""
    for source in container.env_from or []:
        if not _optional(source):
            raise Unsupported("envFrom is not supported by the process node: write the variables under env")
    hostname = pod.spec.node_name if pod.spec.host_network else pod.spec.hostname or pod.metadata.name
    variables = {"PATH": search_path, "HOME": home, "LANG": "C.UTF-8", "HOSTNAME": hostname}
    declared: dict[str, str] = {}
    for variable in container.env or []:
        value = _value(pod, variable, declared)
        if value is not None:
            declared[variable.name] = value
    return variables | declared


def _value(pod: PodObject, variable: EnvVar, declared: Mapping[str, str]) -> str | None:
    if not variable.value_from:
        return expand(variable.value or "", declared)
    kind, source = next(iter(variable.value_from.items()))
    if kind == "fieldRef":
        return field(pod, str(source.get("fieldPath", "")))
    if source.get("optional"):
        return None
    raise Unsupported(f"env {variable.name}: valueFrom.{kind} is not supported by the process node")


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
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name or "default",
        "status.podIP": HOST_ADDRESS,
        "status.podIPs": HOST_ADDRESS,
        "status.hostIP": HOST_ADDRESS,
        "status.hostIPs": HOST_ADDRESS,
    }
    if path not in known:
        raise Unsupported(f"fieldRef {path} is not supported; known are {', '.join(known)} and metadata.labels['…']")
    return known[path]


def _optional(source: Mapping[str, object]) -> bool:
    references = [value for value in source.values() if isinstance(value, dict)]
    return bool(references) and all(bool(reference.get("optional")) for reference in references)
