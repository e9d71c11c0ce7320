"""From a request path to the resource it names."""

from dataclasses import dataclass
from urllib.parse import unquote

from embedded.apiserver.apimachinery.resource_types import Registry, ResourceType
from embedded.apiserver.apimachinery.status import unknown_path

_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Target:
    """A collection (no name), an object, or a sub-resource of one."""

    rtype: ResourceType
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def split_path(path: str) -> list[str]:
    """Decoded path segments; decoding comes after splitting, so that a %2F stays inside its segment."""
    return [unquote(segment) for segment in path.strip("/").split("/")]


def resolve(registry: Registry, group: str, version: str, rest: list[str]) -> Target:
    """The target below one group and version; raises 404 when nothing is served there."""
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_subresource(group, rest):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3 or "" in rest:
        raise unknown_path()
    plural, name, subresource = (*rest, "", "")[:3]
    rtype = registry.by_path(group, version, plural)
    if rtype is None or (namespace and not rtype.namespaced) or (name and rtype.namespaced and not namespace):
        raise unknown_path()
    if subresource and subresource not in rtype.subresources:
        raise unknown_path()
    return Target(rtype, namespace, name, subresource)


def _is_namespace_subresource(group: str, rest: list[str]) -> bool:
    return group == "" and len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES
