"""The resource types the list speaks of, and the smallest valid object of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """One resource of one group and version, and what a minimal object of it holds beside its metadata."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def argument(self) -> str:
        """Unambiguous in a kubectl command."""
        return f"{self.plural}.{self.version}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = ["namespaces", namespace] if self.namespaced and namespace else []
        return "/".join([root, *parts, self.plural, *filter(None, (name, subresource))])

    def object(self, name: str, /, labels: dict[str, str] | None = None, **fields: Any) -> Object:
        """An object with these top-level fields; no name leaves metadata.name out."""
        meta: Object = ({"name": name} if name else {}) | ({"labels": labels} if labels else {})
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **fields}


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
NODES = Resource("", "v1", "nodes", "Node", False)
PODS = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
SERVICES = Resource("", "v1", "services", "Service")
EVENTS = Resource("", "v1", "events", "Event")
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
JOBS = Resource("batch", "v1", "jobs", "Job")
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
NEW_EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_ADMISSION = "admissionregistration.k8s.io"
MUTATING = Resource(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False)
VALIDATING = Resource(_ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)
POLICIES = Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False
)

# Nobody serves this scheduler: the pods of the list stay where the list puts them.
NO_SCHEDULER = "conformance-list"


def pod_spec(**spec: Any) -> Object:
    container = {"name": "main", "image": "registry.example/app:1", "command": ["sleep", "1"]}
    return {"schedulerName": NO_SCHEDULER, "containers": [container]} | spec


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    return PODS.object(name, labels, spec=pod_spec(**spec))


def container(name: str = "main", **fields: Any) -> Object:
    return {"name": name, "image": "registry.example/app:1", **fields}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    return CONFIG_MAPS.object(name, labels, data=data or {"key": "value"})


def job(name: str, **spec: Any) -> Object:
    return JOBS.object(name, spec={"template": {"spec": pod_spec(restartPolicy="Never")}} | spec)


def cron_job(name: str, **spec: Any) -> Object:
    template = {"spec": {"template": {"spec": pod_spec(restartPolicy="Never")}}}
    return CRON_JOBS.object(name, spec={"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template} | spec)


def budget(name: str, app: str, **spec: Any) -> Object:
    return BUDGETS.object(name, spec={"selector": {"matchLabels": {"app": app}}} | spec)


def service(name: str, **spec: Any) -> Object:
    return SERVICES.object(name, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec)


def priority_class(name: str, value: int = 1000, **fields: Any) -> Object:
    return PRIORITY_CLASSES.object(name, value=value, **fields)


def volume(name: str, **spec: Any) -> Object:
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return VOLUMES.object(name, spec=base | {"storageClassName": "none"} | spec)


def claim(name: str, **spec: Any) -> Object:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return CLAIMS.object(name, spec=base | {"storageClassName": "other"} | spec)


def lease(name: str, **spec: Any) -> Object:
    return LEASES.object(name, spec={"holderIdentity": "me", "leaseDurationSeconds": 15} | spec)


def event(name: str, namespace: str, involved: str = "thing") -> Object:
    regarding = {"apiVersion": "v1", "kind": "Pod", "name": involved, "namespace": namespace}
    return EVENTS.object(
        name, involvedObject=regarding, reason="Tested", message="as the list does", type="Normal", source={}
    )


def new_event(name: str, namespace: str) -> Object:
    regarding = {"apiVersion": "v1", "kind": "Pod", "name": "thing", "namespace": namespace}
    return NEW_EVENTS.object(
        name,
        regarding=regarding,
        reason="Tested",
        note="as the list does",
        type="Normal",
        action="Testing",
        eventTime="2026-01-02T03:04:05.123456Z",
        reportingController="example.com/list",
        reportingInstance="list-1",
    )


def definition(group: str, spec_schema: Object | None = None, **version: Any) -> Object:
    """A definition of Widgets in a group of the test's own; `spec_schema` describes `.spec`."""
    schema: Object = {"type": "object", "properties": {"spec": spec_schema or {"type": "object", "properties": {}}}}
    schema["properties"]["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}} | version
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return DEFINITIONS.object(
        f"widgets.{group}", spec={"group": group, "scope": "Namespaced", "names": names, "versions": [first]}
    )


def widgets(group: str, version: str = "v1") -> Resource:
    return Resource(group, version, "widgets", "Widget")


def selecting(group: str) -> Object:
    return {"matchLabels": {"conformance": group}}


def webhook(name: str, **fields: Any) -> Object:
    """A webhook for ConfigMaps of namespaces labelled with its name, at an address nobody listens at."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    return {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        "namespaceSelector": selecting(name.partition(".")[0]),
    } | fields


def policy(name: str, *validations: Object, **spec: Any) -> Object:
    """A policy about ConfigMaps, whose expressions hold or do not."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    found = {"matchConstraints": {"resourceRules": [rule]}, "validations": [*validations]}
    return POLICIES.object(name, spec=found | spec)


def policy_binding(name: str, namespace: str, **spec: Any) -> Object:
    """A use of the policy of the same name in one namespace."""
    own = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    return POLICY_BINDINGS.object(
        name, spec={"policyName": name, "validationActions": ["Deny"], "matchResources": own} | spec
    )


def workload(resource: Resource, name: str, image: str = "registry.example/app:1", **spec: Any) -> Object:
    """A Deployment, ReplicaSet or DaemonSet whose pods carry the label app=NAME."""
    pods = pod_spec(containers=[container(image=image)], tolerations=[{"operator": "Exists"}])
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pods}
    return resource.object(name, spec={"selector": {"matchLabels": labels}, "template": template} | spec)
