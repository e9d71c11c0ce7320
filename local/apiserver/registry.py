"""Which resource types are served: the built-in table, and whatever custom types are registered later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from local.apiserver.objects import dig

if TYPE_CHECKING:
    from local.apiserver.crd import CustomVersion

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One resource of one group and version, as discovery announces it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()  # paths a field selector may name, besides metadata.name and metadata.namespace
    generation: bool = False  # metadata.generation counts changes of the wanted state
    unconditional_update: bool = True  # PUT without a resourceVersion is allowed
    singular: str = ""
    list_kind: str = ""
    verbs: tuple[str, ...] = VERBS
    custom: CustomVersion | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The group-resource name used in messages and as the storage key, such as `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def listing_kind(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources


_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
# Field labels that are not the path of the value they select by.
_FIELD_PATHS = {"source": "source.component", "status.successful": "status.succeeded"}
_FIELD_DEFAULTS = {"spec.unschedulable": "false", "spec.hostNetwork": "false", "status.successful": "0"}

NAMESPACES = ResourceType(
    "", "v1", "namespaces", "Namespace", False, ("ns",), subresources=("finalize", "status"), fields=("status.phase",)
)
NODES = ResourceType(
    "", "v1", "nodes", "Node", False, ("no",), subresources=("status",), fields=("spec.unschedulable",)
)
PODS = ResourceType(
    "",
    "v1",
    "pods",
    "Pod",
    True,
    ("po",),
    ("all",),
    subresources=("binding", "eviction", "log", "status"),
    fields=_POD_FIELDS,
)
EVENTS = ResourceType("", "v1", "events", "Event", True, ("ev",), fields=_EVENT_FIELDS)
CONFIG_MAPS = ResourceType("", "v1", "configmaps", "ConfigMap", True, ("cm",))
SECRETS = ResourceType("", "v1", "secrets", "Secret", True, fields=("type",))
SERVICE_ACCOUNTS = ResourceType("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",))
SERVICES = ResourceType("", "v1", "services", "Service", True, ("svc",), ("all",), subresources=("status",))
LEASES = ResourceType("coordination.k8s.io", "v1", "leases", "Lease", True, unconditional_update=False)
PRIORITY_CLASSES = ResourceType("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",))
DISRUPTION_BUDGETS = ResourceType(
    "policy",
    "v1",
    "poddisruptionbudgets",
    "PodDisruptionBudget",
    True,
    ("pdb",),
    subresources=("status",),
    generation=True,
    unconditional_update=False,
)
JOBS = ResourceType(
    "batch",
    "v1",
    "jobs",
    "Job",
    True,
    categories=("all",),
    subresources=("status",),
    fields=("status.successful",),
    generation=True,
)
CUSTOM_RESOURCE_DEFINITIONS = ResourceType(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
    ("crd", "crds"),
    ("api-extensions",),
    subresources=("status",),
    generation=True,
    unconditional_update=False,
)

BUILT_IN = (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    JOBS,
    LEASES,
    DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    CUSTOM_RESOURCE_DEFINITIONS,
)


def field_values(rtype: ResourceType, obj: dict[str, Any]) -> dict[str, str]:
    """The values a field selector may ask for, as text."""
    values = {"metadata.name": obj["metadata"]["name"], "metadata.namespace": obj["metadata"].get("namespace", "")}
    for label in rtype.fields:
        value = dig(obj, _FIELD_PATHS.get(label, label))
        if isinstance(value, bool):
            value = "true" if value else "false"
        values[label] = _FIELD_DEFAULTS.get(label, "") if value is None else str(value)
    return values


class Registry:
    """The served types by path and by kind; custom types come and go with their definitions."""

    def __init__(self, types: tuple[ResourceType, ...] = BUILT_IN) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self.generation = 0  # moves with every change, so that derived documents can be cached
        self.register(*types)

    def register(self, *types: ResourceType) -> None:
        for rtype in types:
            self._types[(rtype.group, rtype.version, rtype.plural)] = rtype
        self.generation += 1

    def unregister(self, type_id: str) -> None:
        """Stop serving every version of one resource."""
        self._types = {key: rtype for key, rtype in self._types.items() if rtype.id != type_id}
        self.generation += 1

    def by_path(self, group: str, version: str, plural: str) -> ResourceType | None:
        return self._types.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> ResourceType | None:
        return next((t for t in self._types.values() if t.kind == kind and t.api_version == api_version), None)

    def by_id(self, type_id: str) -> ResourceType | None:
        return next((t for t in self._types.values() if t.id == type_id), None)

    def serves(self, group: str, version: str) -> bool:
        return any(g == group and v == version for g, v, _ in self._types)

    def stored(self) -> Iterator[ResourceType]:
        """One type for each stored resource, whichever versions it is served in."""
        yield from {rtype.id: rtype for rtype in self._types.values()}.values()

    def groups(self) -> dict[str, dict[str, list[ResourceType]]]:
        """group → version → types, the core group first, the rest as registered."""
        found: dict[str, dict[str, list[ResourceType]]] = {}
        for rtype in self._types.values():
            found.setdefault(rtype.group, {}).setdefault(rtype.version, []).append(rtype)
        return found
