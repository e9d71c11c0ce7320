"""The columns `kubectl get` prints, per type.

Source: kubernetes `pkg/printers/internalversion/printers.go`; metrics as metrics-server prints them.
"""

from fractions import Fraction

from embedded.apiserver.apimachinery.objects import Object, condition, dig, name_of
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.presentation.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    Column,
    custom_column,
    entries,
    labels,
    path,
    since,
    text,
)
from embedded.apiserver.presentation.rbac_columns import BINDING, ROLE
from embedded.apiserver.presentation.service_columns import ENDPOINT_SLICE, ENDPOINTS, NETWORK_POLICY, SCALE
from embedded.apiserver.presentation.volume_columns import CLAIM, STORAGE_CLASS, VOLUME
from embedded.apiserver.presentation.workload_columns import (
    CONTROLLER_REVISION,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    POD_TEMPLATE,
    REPLICA_SET,
)
from embedded.quantity import parse


def columns_of(rtype: ResourceType) -> tuple[Column, ...]:
    """The columns of a type: its own, a definition's printer columns, or name and age."""
    if rtype.custom is not None:
        custom = tuple(
            custom_column(c.name, c.type, c.json_path, c.priority, c.description) for c in rtype.custom.columns
        )
        return (NAME, *(custom or (AGE,)))
    return _COLUMNS.get(rtype.id, (NAME, AGE))


def _node_status(node: Object, _: float) -> str:
    ready = condition(node, "Ready")
    shown = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if dig(node, "spec.unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _node_roles(node: Object, _: float) -> str:
    prefix = "node-role.kubernetes.io/"
    found = dig(node, "metadata.labels") or {}
    roles = {key.removeprefix(prefix) for key in found if key.startswith(prefix)}
    roles |= {value for key, value in found.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Cell:
    def cell(node: Object, _: float) -> str:
        found = (a["address"] for a in dig(node, "status.addresses") or () if a.get("type") == kind)
        return next(found, NONE)

    return cell


_NODE = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _node_roles),
    AGE,
    Column("Version", path("status.nodeInfo.kubeletVersion")),
    Column("Internal-IP", _node_address("InternalIP"), priority=1),
    Column("External-IP", _node_address("ExternalIP"), priority=1),
    Column("OS-Image", path("status.nodeInfo.osImage", UNKNOWN), priority=1),
    Column("Kernel-Version", path("status.nodeInfo.kernelVersion", UNKNOWN), priority=1),
    Column("Container-Runtime", path("status.nodeInfo.containerRuntimeVersion", UNKNOWN), priority=1),
)


def _event_moment(event: Object, now: float) -> str:
    seen = dig(event, "series.lastObservedTime") or event.get("lastTimestamp")
    return since(seen or event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_object(event: Object, _: float) -> str:
    about = event.get("involvedObject") or {}
    return "/".join(part for part in (str(about.get("kind") or "").lower(), about.get("name")) if part)


def _event_source(event: Object, _: float) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent")
    return ", ".join(part for part in (component, source.get("host") or event.get("reportingInstance")) if part)


_EVENT = (
    Column("Last Seen", _event_moment),
    Column("Type", path("type")),
    Column("Reason", path("reason")),
    Column("Object", _event_object),
    Column("Subobject", path("involvedObject.fieldPath"), priority=1),
    Column("Source", _event_source, priority=1),
    Column("Message", lambda event, _: str(event.get("message") or "").strip()),
    Column("First Seen", lambda e, now: since(e.get("firstTimestamp") or e.get("eventTime"), now), priority=1),
    Column("Count", lambda e, _: dig(e, "series.count") or e.get("count") or 1, "integer", 1),
    Column("Name", lambda event, _: name_of(event), priority=1, format="name"),
)
_BUDGET = (
    NAME,
    Column("Min Available", text("spec.minAvailable", "N/A")),
    Column("Max Unavailable", text("spec.maxUnavailable", "N/A")),
    Column("Allowed Disruptions", path("status.disruptionsAllowed", 0), "integer"),
    AGE,
)
_PRIORITY_CLASS = (
    NAME,
    Column("Value", path("value", 0), "integer"),
    Column("Global-Default", lambda obj, _: bool(obj.get("globalDefault")), "boolean"),
    AGE,
    Column("PreemptionPolicy", path("preemptionPolicy")),
)


def _ports(service: Object, _: float) -> str:
    found = dig(service, "spec.ports") or ()
    shown = [
        f"{p['port']}{':' + str(p['nodePort']) if p.get('nodePort') else ''}/{p.get('protocol', 'TCP')}" for p in found
    ]
    return ",".join(shown) or NONE


def _external_address(service: Object, _: float) -> str:
    if dig(service, "spec.type") == "ExternalName":
        return str(dig(service, "spec.externalName", ""))
    waiting = "<pending>" if dig(service, "spec.type") == "LoadBalancer" else NONE
    return ",".join(dig(service, "spec.externalIPs") or ()) or waiting


_SERVICE = (
    NAME,
    Column("Type", path("spec.type")),
    Column("Cluster-IP", path("spec.clusterIP", NONE)),
    Column("External-IP", _external_address),
    Column("Port(s)", _ports),
    AGE,
    Column("Selector", labels("spec.selector"), priority=1),
)


def _quota(limits: bool) -> Cell:
    def cell(quota: Object, _: float) -> str:
        hard, used = dig(quota, "status.hard") or {}, dig(quota, "status.used") or {}
        names = (name for name in sorted(hard) if name.startswith("limits") == limits)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


_QUOTA = (NAME, Column("Request", _quota(False)), Column("Limit", _quota(True)), AGE)
_WEBHOOKS = (NAME, Column("Webhooks", entries("webhooks"), "integer"), AGE)


def _param_kind(policy: Object, _: float) -> str:
    kind = dig(policy, "spec.paramKind")
    return f"{kind['apiVersion']}/{kind['kind']}" if kind else "<unset>"


def _param_ref(binding: Object, _: float) -> str:
    ref = dig(binding, "spec.paramRef") or {}
    return f"{ref.get('namespace') or '*'}/{ref['name']}" if ref.get("name") else "<unset>"


_POLICY = (
    NAME,
    Column("Validations", lambda policy, _: len(dig(policy, "spec.validations") or ()), "integer"),
    Column("ParamKind", _param_kind),
    AGE,
)
_POLICY_BINDING = (NAME, Column("PolicyName", path("spec.policyName")), Column("ParamRef", _param_ref), AGE)


def _used(resource: str, unit: str) -> Cell:
    """The sum over the containers of a pod, or the amount of a node."""

    def cell(metric: Object, _: float) -> str:
        parts = metric.get("containers") or [metric]
        amount = sum((parse(dig(part, f"usage.{resource}", "0")) for part in parts), Fraction(0))
        return f"{int(amount / parse(f'1{unit}'))}{unit}"

    return cell


_METRICS = (
    NAME,
    Column("CPU", _used("cpu", "n")),
    Column("Memory", _used("memory", "Ki")),
    Column("Window", path("window")),
)
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": POD,
    "nodes": _NODE,
    "events": _EVENT,
    "events.events.k8s.io": _EVENT,
    "controllerrevisions.apps": CONTROLLER_REVISION,
    "daemonsets.apps": DAEMON_SET,
    "deployments.apps": DEPLOYMENT,
    "replicasets.apps": REPLICA_SET,
    "replicationcontrollers": REPLICA_SET,
    "scales.autoscaling": SCALE,
    "cronjobs.batch": CRON_JOB,
    "jobs.batch": JOB,
    "podtemplates": POD_TEMPLATE,
    "poddisruptionbudgets.policy": _BUDGET,
    "priorityclasses.scheduling.k8s.io": _PRIORITY_CLASS,
    "persistentvolumes": VOLUME,
    "persistentvolumeclaims": CLAIM,
    "storageclasses.storage.k8s.io": STORAGE_CLASS,
    **{f"{plural}.rbac.authorization.k8s.io": ROLE for plural in ("clusterroles", "roles")},
    **{f"{plural}.rbac.authorization.k8s.io": BINDING for plural in ("clusterrolebindings", "rolebindings")},
    "namespaces": (NAME, Column("Status", path("status.phase")), AGE),
    "configmaps": (NAME, Column("Data", entries("data", "binaryData"), "integer"), AGE),
    "secrets": (NAME, Column("Type", path("type")), Column("Data", entries("data"), "integer"), AGE),
    "serviceaccounts": (NAME, Column("Secrets", entries("secrets"), "integer"), AGE),
    "services": _SERVICE,
    "endpoints": ENDPOINTS,
    "endpointslices.discovery.k8s.io": ENDPOINT_SLICE,
    "networkpolicies.networking.k8s.io": NETWORK_POLICY,
    "resourcequotas": _QUOTA,
    "leases.coordination.k8s.io": (NAME, Column("Holder", path("spec.holderIdentity")), AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (
        NAME,
        Column("Created At", path("metadata.creationTimestamp")),
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingadmissionpolicies.admissionregistration.k8s.io": _POLICY,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _POLICY_BINDING,
    "nodes.metrics.k8s.io": _METRICS,
    "pods.metrics.k8s.io": _METRICS,
}
