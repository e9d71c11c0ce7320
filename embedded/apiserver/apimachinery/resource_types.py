"""Which resource types are served: the built-in table, and whatever custom types are registered later."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from embedded.apiserver.apimachinery.field_errors import FieldError

# Groups whose words a custom type may have too, and then means: those come after the custom groups.
_LAST_GROUPS = ("scheduling.k8s.io", "metrics.k8s.io")
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_ONE_BY_ONE = tuple(verb for verb in VERBS if verb != "deletecollection")


@dataclass(frozen=True, slots=True)
class Form:
    """How the objects of a type look other than stored: stored → shown, and back."""

    shown: Callable[[dict[str, Any]], dict[str, Any]]
    stored: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One additionalPrinterColumn of a definition."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int
    format: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the objects keep what autoscaling/v1 Scale shows, as dotted paths; `selector` may be empty."""

    spec_replicas: str
    status_replicas: str
    selector: str


class CustomVersion(Protocol):
    """What one version of a definition says about its objects."""

    @property
    def schema(self) -> dict[str, Any] | None: ...

    @property
    def columns(self) -> tuple[PrinterColumn, ...]: ...

    @property
    def storage_api_version(self) -> str: ...

    @property
    def only_version(self) -> bool: ...

    @property
    def scale(self) -> ScalePaths | None: ...

    @property
    def storage_schema(self) -> dict[str, Any] | None: ...

    def default(self, obj: dict[str, Any]) -> None:
        """Fill in what the schema has defaults for."""

    def restore(self, obj: dict[str, Any]) -> None:
        """Bring an object that was stored under an earlier definition in line, in place."""

    def errors(self, obj: dict[str, Any], old: dict[str, Any] | None) -> Sequence[FieldError]:
        """What the schema does not allow; what `old` has as well is not held against a change."""


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
    created_by_put: bool = False  # PUT of what is not there creates it
    singular: str = ""
    list_kind: str = ""
    verbs: tuple[str, ...] = VERBS
    field_aliases: Mapping[str, str] = field(default_factory=dict, compare=False)  # selector → indexed label
    form: Form | None = field(default=None, compare=False)
    custom: CustomVersion | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The group-resource name used in messages and as the storage key, such as `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

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
_FIELD_DEFAULTS = {
    **dict.fromkeys(("spec.unschedulable", "spec.hostNetwork"), "false"),
    "status.successful": "0",
}

NAMESPACES = ResourceType(
    *("", "v1", "namespaces", "Namespace", False, ("ns",)),
    subresources=("finalize", "status"),
    fields=("status.phase",),
    verbs=_ONE_BY_ONE,
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
    subresources=("attach", "binding", "eviction", "exec", "log", "portforward", "resize", "status"),
    fields=_POD_FIELDS,
)
# What sub-resources take: nothing of it is kept, and a Binding alone has a path of its own.
BINDINGS = ResourceType("", "v1", "bindings", "Binding", True, verbs=("create",))
EVICTIONS = ResourceType("policy", "v1", "evictions", "Eviction", True)
SCALES = ResourceType("autoscaling", "v1", "scales", "Scale", True)
EVENTS = ResourceType("", "v1", "events", "Event", True, ("ev",), fields=_EVENT_FIELDS, created_by_put=True)
CONFIG_MAPS = ResourceType("", "v1", "configmaps", "ConfigMap", True, ("cm",))
SECRETS = ResourceType("", "v1", "secrets", "Secret", True, fields=("type",))
SERVICE_ACCOUNTS = ResourceType("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",), subresources=("token",))
SERVICES = ResourceType(
    *("", "v1", "services", "Service", True, ("svc",), ("all",), ("status",)),
    fields=("spec.clusterIP", "spec.type"),
    created_by_put=True,
)
POD_TEMPLATES = ResourceType("", "v1", "podtemplates", "PodTemplate", True)
RESOURCE_QUOTAS = ResourceType("", "v1", "resourcequotas", "ResourceQuota", True, ("quota",), subresources=("status",))
LEASES = ResourceType(
    *("coordination.k8s.io", "v1", "leases", "Lease", True), unconditional_update=False, created_by_put=True
)
PRIORITY_CLASSES = ResourceType("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",))
PERSISTENT_VOLUMES = ResourceType(
    "", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",), subresources=("status",)
)
PERSISTENT_VOLUME_CLAIMS = ResourceType(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",), subresources=("status",)
)
STORAGE_CLASSES = ResourceType("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",))
# KEP-4671; in a real API server a beta that has to be asked for.
POD_GROUPS = ResourceType("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True, subresources=("status",))
WORKLOADS = ResourceType("scheduling.k8s.io", "v1beta1", "workloads", "Workload", True)
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
CRON_JOBS = ResourceType(
    "batch", "v1", "cronjobs", "CronJob", True, ("cj",), ("all",), subresources=("status",), generation=True
)
DEPLOYMENTS = ResourceType(
    *("apps", "v1", "deployments", "Deployment", True, ("deploy",), ("all",), ("scale", "status")), generation=True
)
REPLICA_SETS = ResourceType(
    *("apps", "v1", "replicasets", "ReplicaSet", True, ("rs",), ("all",), ("scale", "status")),
    generation=True,
)
DAEMON_SETS = ResourceType(
    "apps", "v1", "daemonsets", "DaemonSet", True, ("ds",), ("all",), subresources=("status",), generation=True
)
# Kept and shown, for commands that go through every kind of a cluster (`kubectl apply --prune`); nobody acts on them.
REPLICATION_CONTROLLERS = ResourceType(
    *("", "v1", "replicationcontrollers", "ReplicationController", True, ("rc",), ("all",), ("status",)),
    fields=("status.replicas",),
    generation=True,
)
STATEFUL_SETS = ResourceType(
    *("apps", "v1", "statefulsets", "StatefulSet", True, ("sts",), ("all",), ("status",)), generation=True
)
INGRESSES = ResourceType(
    *("networking.k8s.io", "v1", "ingresses", "Ingress", True, ("ing",), (), ("status",)), generation=True
)
STORED_ONLY = {
    REPLICATION_CONTROLLERS.id: "no pods are made for it; use a Deployment",
    STATEFUL_SETS.id: "no pods are made for it; use a Deployment",
    INGRESSES.id: "nothing is routed by it",
}
"""Type → what comes of it that nobody acts on its objects."""
CONTROLLER_REVISIONS = ResourceType("apps", "v1", "controllerrevisions", "ControllerRevision", True)
ENDPOINTS = ResourceType("", "v1", "endpoints", "Endpoints", True, ("ep",), singular="endpoints", created_by_put=True)
ENDPOINT_SLICES = ResourceType("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True, generation=True)
NETWORK_POLICIES = ResourceType(
    "networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True, ("netpol",), generation=True
)
_RBAC = ("rbac.authorization.k8s.io", "v1")
CLUSTER_ROLES = ResourceType(*_RBAC, "clusterroles", "ClusterRole", False, created_by_put=True)
CLUSTER_ROLE_BINDINGS = ResourceType(*_RBAC, "clusterrolebindings", "ClusterRoleBinding", False, created_by_put=True)
ROLES = ResourceType(*_RBAC, "roles", "Role", True, created_by_put=True)
ROLE_BINDINGS = ResourceType(*_RBAC, "rolebindings", "RoleBinding", True, created_by_put=True)
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
MUTATING_WEBHOOKS = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
    categories=("api-extensions",),
    generation=True,
    unconditional_update=False,
)
VALIDATING_WEBHOOKS = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
    categories=("api-extensions",),
    generation=True,
    unconditional_update=False,
)
VALIDATING_POLICIES = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicies",
    "ValidatingAdmissionPolicy",
    False,
    categories=("api-extensions",),
    subresources=("status",),
    generation=True,
    unconditional_update=False,
)
VALIDATING_POLICY_BINDINGS = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    False,
    categories=("api-extensions",),
    generation=True,
    unconditional_update=False,
)

BUILT_IN = (
    CONFIG_MAPS,
    ENDPOINTS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    POD_TEMPLATES,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    JOBS,
    CRON_JOBS,
    LEASES,
    ENDPOINT_SLICES,
    INGRESSES,
    NETWORK_POLICIES,
    DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    POD_GROUPS,
    WORKLOADS,
    STORAGE_CLASSES,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    ROLES,
    ROLE_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
)


# Types that are another form of one that keeps their objects.
STORED_AS = {"events.events.k8s.io": EVENTS.id}


def field_values(rtype: ResourceType, obj: dict[str, Any]) -> dict[str, str]:
    """The values a field selector may ask for, as text."""
    values = {"metadata.name": obj["metadata"]["name"], "metadata.namespace": obj["metadata"].get("namespace", "")}
    for label, steps, default in _field_steps(rtype.fields):
        value: Any = obj
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        values[label] = default if value is None else str(value)
    return values


@lru_cache
def _field_steps(labels: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """(label, path in steps, default) of each field: taken apart once, as every write asks."""
    return tuple(
        (label, tuple(_FIELD_PATHS.get(label, label).split(".")), _FIELD_DEFAULTS.get(label, "")) for label in labels
    )


_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def version_order(name: str) -> tuple[int, int, int, str]:
    """A key that sorts versions as Kubernetes prefers them: v10, v2, v1, v2beta1, v1alpha1, then the others.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
    """
    found = _VERSION.fullmatch(name)
    if found is None:
        return (3, 0, 0, name)
    major, stage, minor = found.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), name)


def _by_version(item: tuple[str, object]) -> tuple[int, int, int, str]:
    return version_order(item[0])


def _lateness(rtype: ResourceType) -> int:
    return _LAST_GROUPS.index(rtype.group) + 1 if rtype.group in _LAST_GROUPS else 0


class Registry:
    """The served types by path and by kind; custom types come and go with their definitions."""

    def __init__(self, types: tuple[ResourceType, ...] = BUILT_IN) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self.generation = 0  # moves with every change, so that derived documents can be cached
        self.register(*types)

    def register(self, *types: ResourceType) -> None:
        # Replaced as a whole, since large bodies are read beside the event loop.
        self._types = self._types | {(rtype.group, rtype.version, rtype.plural): rtype for rtype in types}
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

    def versions(self, type_id: str) -> list[ResourceType]:
        """Every served version of a resource."""
        return [found for found in self._types.values() if found.id == type_id]

    def versions_of(self, rtype: ResourceType) -> list[ResourceType]:
        """Every served version of a resource, the given one first."""
        others = [found for found in self._types.values() if found.id == rtype.id and found.version != rtype.version]
        return [rtype, *others]

    def serves(self, group: str, version: str) -> bool:
        return any(g == group and v == version for g, v, _ in self._types)

    def stored(self) -> Iterator[ResourceType]:
        """One type for each stored resource, whichever versions it is served in."""
        found: dict[str, ResourceType] = {}
        for rtype in self._types.values():
            found.setdefault(STORED_AS.get(rtype.id, rtype.id), rtype)
        yield from found.values()

    def groups(self) -> dict[str, dict[str, list[ResourceType]]]:
        """group → version → types: the core group first, the rest as registered; the most stable version first.

        Clients that look for `nodemetrics` or `podgroups` take the first group that knows the word, and a custom type
        of that name is meant: metrics come last, as their low priority in the aggregation layer has it, and scheduling
        before them, whose PodGroup a real API server serves only where it is asked to.
        """
        found: dict[str, dict[str, list[ResourceType]]] = {}
        for rtype in sorted(self._types.values(), key=_lateness):
            found.setdefault(rtype.group, {}).setdefault(rtype.version, []).append(rtype)
        return {group: dict(sorted(types.items(), key=_by_version)) for group, types in found.items()}
