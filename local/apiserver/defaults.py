"""Default values of built-in types. Applied before and again after admission, so each step only fills gaps."""

from collections.abc import Callable

from local.apiserver.objects import Object, copy, dig, ensure
from local.apiserver.registry import ResourceType


def apply_defaults(rtype: ResourceType, obj: Object) -> None:
    """Fill the gaps a real API server fills, in place."""
    default = _DEFAULTS.get(rtype.id)
    if default is not None:
        default(obj)


def _fill(target: Object, **values: object) -> None:
    for key, value in values.items():
        if target.get(key) in (None, ""):  # Go clients write an unset text as an empty one
            target[key] = value


def default_pod_spec(spec: Object) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
    )
    spec.setdefault("securityContext", {})
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Object) -> None:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2]
    floating = "@" not in image and tag in ("", "latest")
    _fill(
        container,
        imagePullPolicy="Always" if floating else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        reference = dig(variable, "valueFrom.fieldRef")
        if isinstance(reference, dict):
            reference.setdefault("apiVersion", "v1")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _fill(container[probe], timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)


def _default_volume(volume: Object) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 0o644)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")


def _default_pod(pod: Object) -> None:
    spec = ensure(pod, "spec")
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _request_limits(container["resources"])


def _request_limits(resources: Object) -> None:
    """A limit without a request asks for as much as it allows. Templates stay as written, only pods get this."""
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


def _default_node(node: Object) -> None:
    status = ensure(node, "status")
    ensure(node, "spec")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = copy(status["capacity"])


def _default_namespace(namespace: Object) -> None:
    meta = ensure(namespace, "metadata")
    if meta.get("name"):
        ensure(meta, "labels").setdefault("kubernetes.io/metadata.name", meta["name"])
    ensure(namespace, "spec")
    ensure(namespace, "status").setdefault("phase", "Active")


def _default_job(job: Object) -> None:
    spec = ensure(job, "spec")
    _fill(spec, backoffLimit=6, completionMode="NonIndexed", suspend=False, podReplacementPolicy="TerminatingOrFailed")
    spec.setdefault("parallelism", 1)
    # With parallelism alone the job is a work queue, where the first success means the rest may finish.
    if "completions" not in spec and spec["parallelism"] == 1:
        spec["completions"] = 1
    template = ensure(spec, "template")
    default_pod_spec(ensure(template, "spec"))
    meta = ensure(job, "metadata")
    labels = dig(template, "metadata.labels")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def _default_priority_class(priority_class: Object) -> None:
    _fill(priority_class, value=0, preemptionPolicy="PreemptLowerPriority")


def _default_event(event: Object) -> None:
    _fill(event, reportingComponent=dig(event, "source.component", "") or "", reportingInstance="")
    event.setdefault("source", {})


def _default_definition(definition: Object) -> None:
    spec = definition["spec"]
    names = spec["names"]
    _fill(names, singular=names["kind"].lower(), listKind=names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})


def _default_secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")


_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "pods": _default_pod,
    "nodes": _default_node,
    "namespaces": _default_namespace,
    "jobs.batch": _default_job,
    "priorityclasses.scheduling.k8s.io": _default_priority_class,
    "events": _default_event,
    "secrets": _default_secret,
    "customresourcedefinitions.apiextensions.k8s.io": _default_definition,
}
