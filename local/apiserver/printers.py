"""The columns `kubectl get` prints, per type: each is a name and how to read its cell from an object."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.apiserver import jsonpath
from local.apiserver.durations import human_duration
from local.apiserver.objects import Object, being_deleted, condition, dig, name_of, parse_time
from local.apiserver.pod_status import pod_reason, pod_restarts
from local.apiserver.registry import ResourceType

Cell = Callable[[Object, float], Any]
_NONE, _UNKNOWN = "<none>", "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    """One column; priority 1 shows only with `-o wide`."""

    name: str
    cell: Cell
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""


def columns_of(rtype: ResourceType) -> tuple[Column, ...]:
    """The columns of a type: its own, a definition's printer columns, or name and age."""
    if rtype.custom is not None:
        custom = tuple(
            _custom_column(c.name, c.type, c.json_path, c.priority, c.description) for c in rtype.custom.columns
        )
        return (_NAME, *(custom or (_AGE,)))
    return _COLUMNS.get(rtype.id, (_NAME, _AGE))


def _age(obj: Object, now: float) -> str:
    return _since(dig(obj, "metadata.creationTimestamp"), now)


def _since(text: str | None, now: float) -> str:
    moment = parse_time(text)
    return _UNKNOWN if moment is None else human_duration(now - moment)


def _path(path: str, default: Any = "") -> Cell:
    return lambda obj, _: found if (found := dig(obj, path)) not in (None, "") else default


def _custom_column(name: str, kind: str, path: str, priority: int, description: str) -> Column:
    read = jsonpath.compile_path(path)

    def cell(obj: Object, now: float) -> Any:
        value = read(obj)
        if value is None:
            return None
        if kind == "date":
            return _since(value, now) if isinstance(value, str) else "<invalid>"
        return value if kind in ("integer", "number", "boolean") or isinstance(value, str) else str(value)

    return Column(name, cell, kind if kind != "date" else "string", priority, description=description)


_NAME = Column(
    "Name", lambda obj, _: name_of(obj), format="name", description="Name must be unique within a namespace."
)
_AGE = Column("Age", _age, description="Time since the object was created.")


def _pod_ready(pod: Object, _: float) -> str:
    statuses = dig(pod, "status.containerStatuses") or []
    return f"{sum(bool(s.get('ready')) for s in statuses)}/{len(dig(pod, 'spec.containers') or ())}"


def _restarts(pod: Object, now: float) -> str:
    count, last = pod_restarts(pod)
    return str(count) if last is None or not count else f"{count} ({human_duration(now - last)} ago)"


def _readiness_gates(pod: Object, _: float) -> str:
    gates = dig(pod, "spec.readinessGates") or []
    if not gates:
        return _NONE
    met = sum((condition(pod, gate["conditionType"]) or {}).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}"


_POD = (
    _NAME,
    Column("Ready", _pod_ready),
    Column("Status", lambda pod, _: pod_reason(pod)),
    Column("Restarts", _restarts),
    _AGE,
    Column("IP", _path("status.podIP", _NONE), priority=1),
    Column("Node", _path("spec.nodeName", _NONE), priority=1),
    Column("Nominated Node", _path("status.nominatedNodeName", _NONE), priority=1),
    Column("Readiness Gates", _readiness_gates, priority=1),
)


def _node_status(node: Object, _: float) -> str:
    ready = condition(node, "Ready")
    shown = ["Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"]
    if dig(node, "spec.unschedulable"):
        shown.append("SchedulingDisabled")
    return ",".join(shown)


def _node_roles(node: Object, _: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = dig(node, "metadata.labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or _NONE


def _node_address(kind: str) -> Cell:
    def cell(node: Object, _: float) -> str:
        found = (a["address"] for a in dig(node, "status.addresses") or () if a.get("type") == kind)
        return next(found, _NONE)

    return cell


_NODE = (
    _NAME,
    Column("Status", _node_status),
    Column("Roles", _node_roles),
    _AGE,
    Column("Version", _path("status.nodeInfo.kubeletVersion")),
    Column("Internal-IP", _node_address("InternalIP"), priority=1),
    Column("External-IP", _node_address("ExternalIP"), priority=1),
    Column("OS-Image", _path("status.nodeInfo.osImage", _UNKNOWN), priority=1),
    Column("Kernel-Version", _path("status.nodeInfo.kernelVersion", _UNKNOWN), priority=1),
    Column("Container-Runtime", _path("status.nodeInfo.containerRuntimeVersion", _UNKNOWN), priority=1),
)


def _event_moment(event: Object, now: float) -> str:
    moment = (
        dig(event, "series.lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
    )
    return _since(moment, now)


def _event_object(event: Object, _: float) -> str:
    about = event.get("involvedObject") or {}
    return f"{(about.get('kind') or '').lower()}/{about.get('name') or ''}"


def _event_source(event: Object, _: float) -> str:
    source = event.get("source") or {}
    parts = (source.get("component") or event.get("reportingComponent"), source.get("host"))
    return ", ".join(part for part in parts if part)


_EVENT = (
    Column("Last Seen", _event_moment),
    Column("Type", _path("type")),
    Column("Reason", _path("reason")),
    Column("Object", _event_object),
    Column("Subobject", _path("involvedObject.fieldPath"), priority=1),
    Column("Source", _event_source, priority=1),
    Column("Message", lambda event, _: str(event.get("message") or "").strip()),
    Column("First Seen", lambda e, now: _since(e.get("firstTimestamp") or e.get("eventTime"), now), priority=1),
    Column("Count", lambda e, _: dig(e, "series.count") or e.get("count") or 1, "integer", 1),
    Column("Name", lambda event, _: name_of(event), priority=1, format="name"),
)


def _job_status(job: Object, _: float) -> str:
    for kind in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if (condition(job, kind) or {}).get("status") == "True":
            return kind
    return "Terminating" if being_deleted(job) else "Running"


def _job_completions(job: Object, _: float) -> str:
    done, wanted = dig(job, "status.succeeded", 0), dig(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = dig(job, "spec.parallelism", 0)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Object, now: float) -> str:
    start, end = parse_time(dig(job, "status.startTime")), parse_time(dig(job, "status.completionTime"))
    if start is None:
        return ""
    failed = condition(job, "Failed")
    if end is None and failed:
        end = parse_time(failed.get("lastTransitionTime"))
    return human_duration((now if end is None else end) - start)


def _containers(key: str) -> Cell:
    return lambda job, _: ",".join(str(c.get(key, "")) for c in dig(job, "spec.template.spec.containers") or ())


def _selector(path: str) -> Cell:
    def cell(obj: Object, _: float) -> str:
        labels = dig(obj, f"{path}.matchLabels") or {}
        return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE

    return cell


_JOB = (
    _NAME,
    Column("Status", _job_status),
    Column("Completions", _job_completions),
    Column("Duration", _job_duration),
    _AGE,
    Column("Containers", _containers("name"), priority=1),
    Column("Images", _containers("image"), priority=1),
    Column("Selector", _selector("spec.selector"), priority=1),
)


def _text(path: str, default: str) -> Cell:
    return lambda obj, _: default if (found := dig(obj, path)) is None else str(found)


_BUDGET = (
    _NAME,
    Column("Min Available", _text("spec.minAvailable", "N/A")),
    Column("Max Unavailable", _text("spec.maxUnavailable", "N/A")),
    Column("Allowed Disruptions", _path("status.disruptionsAllowed", 0), "integer"),
    _AGE,
)
_PRIORITY_CLASS = (
    _NAME,
    Column("Value", _path("value", 0), "integer"),
    Column("Global-Default", lambda obj, _: bool(obj.get("globalDefault")), "boolean"),
    _AGE,
    Column("PreemptionPolicy", _path("preemptionPolicy"), priority=1),
)


def _entries(*keys: str) -> Cell:
    return lambda obj, _: sum(len(obj.get(key) or ()) for key in keys)


_COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": _POD,
    "nodes": _NODE,
    "events": _EVENT,
    "jobs.batch": _JOB,
    "poddisruptionbudgets.policy": _BUDGET,
    "priorityclasses.scheduling.k8s.io": _PRIORITY_CLASS,
    "namespaces": (_NAME, Column("Status", _path("status.phase")), _AGE),
    "configmaps": (_NAME, Column("Data", _entries("data", "binaryData"), "integer"), _AGE),
    "secrets": (_NAME, Column("Type", _path("type")), Column("Data", _entries("data"), "integer"), _AGE),
    "serviceaccounts": (_NAME, Column("Secrets", _entries("secrets"), "integer"), _AGE),
    "leases.coordination.k8s.io": (_NAME, Column("Holder", _path("spec.holderIdentity")), _AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (
        _NAME,
        Column("Created At", _path("metadata.creationTimestamp")),
    ),
}
