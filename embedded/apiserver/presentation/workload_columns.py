"""The columns of what runs: pods, jobs, cron jobs, pod templates, deployments, replica sets, daemon sets.

Source: kubernetes `pkg/printers/internalversion/printers.go`.
"""

from typing import Any

from embedded.apiserver.apimachinery.durations import human_duration
from embedded.apiserver.apimachinery.objects import Object, being_deleted, condition, controller_of, dig, parse_time
from embedded.apiserver.presentation.columns import AGE, NAME, NONE, Cell, Column, labels, path, selector, since
from embedded.apiserver.presentation.pod_status import pod_ready, pod_reason, pod_restarts


def _pod_ready(pod: Object, _: float) -> str:
    ready, total = pod_ready(pod)
    return f"{ready}/{total}"


def _restarts(pod: Object, now: float) -> str:
    count, last = pod_restarts(pod)
    return str(count) if last is None or not count else f"{count} ({human_duration(now - last)} ago)"


def _readiness_gates(pod: Object, _: float) -> str:
    gates = dig(pod, "spec.readinessGates") or []
    if not gates:
        return NONE
    met = sum((condition(pod, gate["conditionType"]) or {}).get("status") == "True" for gate in gates)
    return f"{met}/{len(gates)}"


POD = (
    NAME,
    Column("Ready", _pod_ready, description="Ready containers of all containers of the pod."),
    Column("Status", lambda pod, _: pod_reason(pod), description="What the pod is at, and why."),
    Column("Restarts", _restarts, description="How often containers were restarted, and when the last time."),
    AGE,
    Column("IP", path("status.podIP", NONE), priority=1),
    Column("Node", path("spec.nodeName", NONE), priority=1),
    Column("Nominated Node", path("status.nominatedNodeName", NONE), priority=1),
    Column("Readiness Gates", _readiness_gates, priority=1),
)


def _containers(key: str, where: str = "spec.template.spec.containers") -> Cell:
    return lambda job, _: ",".join(str(c.get(key, "")) for c in dig(job, where) or ())


def _job_status(job: Object, _: float) -> str:
    def holds(kind: str) -> bool:
        return (condition(job, kind) or {}).get("status") == "True"

    ended = next((kind for kind in ("Complete", "Failed") if holds(kind)), "")
    if ended or being_deleted(job):
        return ended or "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if holds(kind)), "Running")


def _job_completions(job: Object, _: float) -> str:
    done, wanted = dig(job, "status.succeeded", 0), dig(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = dig(job, "spec.parallelism", 0)
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Object, now: float) -> str:
    start, end = parse_time(dig(job, "status.startTime")), parse_time(dig(job, "status.completionTime"))
    return "" if start is None else human_duration((now if end is None else end) - start)


JOB = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _job_completions),
    Column("Duration", _job_duration),
    AGE,
    Column("Containers", _containers("name"), priority=1),
    Column("Images", _containers("image"), priority=1),
    Column("Selector", selector("spec.selector"), priority=1),
)


def _last_schedule(cronjob: Object, now: float) -> str:
    moment = dig(cronjob, "status.lastScheduleTime")
    return since(moment, now) if moment else NONE


def _active(cronjob: Object, _: float) -> Any:
    return len(dig(cronjob, "status.active") or ())


_CRON_CONTAINERS = "spec.jobTemplate.spec.template.spec.containers"
CRON_JOB = (
    NAME,
    Column("Schedule", path("spec.schedule")),
    Column("Timezone", path("spec.timeZone", NONE)),
    Column("Suspend", lambda cronjob, _: str(bool(dig(cronjob, "spec.suspend")))),
    Column("Active", _active, "integer"),
    Column("Last Schedule", _last_schedule),
    AGE,
    Column("Containers", _containers("name", _CRON_CONTAINERS), priority=1),
    Column("Images", _containers("image", _CRON_CONTAINERS), priority=1),
    Column("Selector", selector("spec.jobTemplate.spec.selector"), priority=1),
)
POD_TEMPLATE = (
    NAME,
    Column("Containers", _containers("name", "template.spec.containers")),
    Column("Images", _containers("image", "template.spec.containers")),
    Column("Pod Labels", labels("template.metadata.labels")),
)
_WIDE = (
    Column("Containers", _containers("name"), priority=1),
    Column("Images", _containers("image"), priority=1),
    Column("Selector", selector("spec.selector"), priority=1),
)


def _deployment_ready(deployment: Object, _: float) -> str:
    return f"{dig(deployment, 'status.readyReplicas', 0)}/{dig(deployment, 'spec.replicas', 0)}"


DEPLOYMENT = (
    NAME,
    Column("Ready", _deployment_ready, description="Number of the pod with ready state"),
    Column("Up-to-date", path("status.updatedReplicas", 0)),
    Column("Available", path("status.availableReplicas", 0)),
    AGE,
    *_WIDE,
)
REPLICA_SET = (
    NAME,
    Column("Desired", path("spec.replicas", 0), "integer"),
    Column("Current", path("status.replicas", 0), "integer"),
    Column("Ready", path("status.readyReplicas", 0), "integer"),
    AGE,
    *_WIDE,
)
DAEMON_SET = (
    NAME,
    Column("Desired", path("status.desiredNumberScheduled", 0), "integer"),
    Column("Current", path("status.currentNumberScheduled", 0), "integer"),
    Column("Ready", path("status.numberReady", 0), "integer"),
    Column("Up-to-date", path("status.updatedNumberScheduled", 0), "integer"),
    Column("Available", path("status.numberAvailable", 0), "integer"),
    Column("Node Selector", labels("spec.template.spec.nodeSelector")),
    AGE,
    *_WIDE,
)


def _controller(revision: Object, _: float) -> str:
    owner = controller_of(revision)
    if owner is None:
        return NONE
    group = owner["apiVersion"].rpartition("/")[0]
    return f"{owner['kind'].lower()}{group and '.'}{group}/{owner['name']}"


CONTROLLER_REVISION = (
    NAME,
    Column("Controller", _controller),
    Column("Revision", path("revision", 0)),
    AGE,
)
