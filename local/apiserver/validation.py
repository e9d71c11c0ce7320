"""What is wrong with an object, as a list of field errors: per type, and against what it was before."""

from collections.abc import Callable, Iterable, Iterator

from local.apiserver import names
from local.apiserver.admission import CRD_CLEANUP, HIGHEST_USER_PRIORITY, wanted_state
from local.apiserver.crd import definition_errors
from local.apiserver.objects import Object, copy, dig, name_of
from local.apiserver.pod_validation import pod_spec_errors, pod_update_errors
from local.apiserver.registry import ResourceType
from local.apiserver.status import FieldError, bad_value, duplicate, not_allowed, not_supported, required

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_IMMUTABLE = "field is immutable"


def errors(rtype: ResourceType, obj: Object, old: Object | None, subresource: str = "") -> Iterator[FieldError]:
    """Every field error of an object; `old` is what it replaces, None for a new one."""
    yield from names.metadata_errors(rtype, obj)
    if rtype.custom is not None:
        yield from rtype.custom.errors(obj)
    elif check := _CHECKS.get(rtype.id):
        yield from check(obj)
    if old is None:
        return
    yield from _new_finalizers(obj, old)
    if not subresource and (compare := _COMPARISONS.get(rtype.id)):
        yield from compare(obj, old)


def _new_finalizers(obj: Object, old: Object) -> Iterator[FieldError]:
    if not dig(old, "metadata.deletionTimestamp"):
        return
    added = set(dig(obj, "metadata.finalizers") or ()) - set(dig(old, "metadata.finalizers") or ())
    if added:
        yield not_allowed(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}",
        )


def _pod(pod: Object) -> Iterator[FieldError]:
    yield from pod_spec_errors("spec", pod["spec"])


def _node(node: Object) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(dig(node, "spec.taints") or ()):
        path = f"spec.taints[{index}]"
        yield from names.qualified_name(f"{path}.key", taint["key"])
        if taint["effect"] not in _TAINT_EFFECTS:
            yield not_supported(f"{path}.effect", taint["effect"], _TAINT_EFFECTS)
        if (taint["key"], taint["effect"]) in seen:
            yield duplicate(path, taint)
        seen.add((taint["key"], taint["effect"]))
    for group in ("capacity", "allocatable"):
        for resource, amount in (dig(node, f"status.{group}") or {}).items():
            if amount.startswith("-"):
                yield bad_value(f"status.{group}.{resource}", amount, "must be greater than or equal to 0")


def _natural(path: str, value: int | None, least: int = 0) -> Iterator[FieldError]:
    if value is not None and value < least:
        yield bad_value(
            path, value, f"must be greater than or equal to {least}" if least == 0 else "must be greater than 0"
        )


def _job(job: Object) -> Iterator[FieldError]:
    spec = job["spec"]
    for key in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        yield from _natural(f"spec.{key}", spec.get(key))
    if spec["completionMode"] not in ("NonIndexed", "Indexed"):
        yield not_supported("spec.completionMode", spec["completionMode"], ("NonIndexed", "Indexed"))
    if spec["completionMode"] == "Indexed" and spec.get("completions") is None:
        yield required("spec.completions", "when completion mode is Indexed")
    template = spec["template"]["spec"]
    if template["restartPolicy"] not in ("OnFailure", "Never"):
        yield not_supported("spec.template.spec.restartPolicy", template["restartPolicy"], ("OnFailure", "Never"))
    yield from names.labels("spec.template.labels", dig(spec, "template.metadata.labels"))
    yield from pod_spec_errors("spec.template.spec", template)


def _budget(budget: Object) -> Iterator[FieldError]:
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield bad_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        yield from _int_or_percent(f"spec.{key}", spec.get(key))


def _int_or_percent(path: str, value: int | str | None) -> Iterator[FieldError]:
    if isinstance(value, int):
        yield from _natural(path, value)
    elif isinstance(value, str):
        if not (value.endswith("%") and value[:-1].isdecimal()):
            yield bad_value(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
        elif int(value[:-1]) > 100:
            yield bad_value(path, value, "must not be greater than 100%")


def _priority_class(obj: Object) -> Iterator[FieldError]:
    name, value = name_of(obj), obj["value"]
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            yield not_allowed(
                "metadata.name", "priority class names with 'system-' prefix are reserved for system use only"
            )
    elif value > HIGHEST_USER_PRIORITY:
        yield not_allowed("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}")
    if obj["preemptionPolicy"] not in ("PreemptLowerPriority", "Never"):
        yield not_supported("preemptionPolicy", obj["preemptionPolicy"], ("PreemptLowerPriority", "Never"))


def _lease(lease: Object) -> Iterator[FieldError]:
    yield from _natural("spec.leaseDurationSeconds", dig(lease, "spec.leaseDurationSeconds"), least=1)
    yield from _natural("spec.leaseTransitions", dig(lease, "spec.leaseTransitions"))


def _event(event: Object) -> Iterator[FieldError]:
    about = event.get("involvedObject") or {}
    namespace = event["metadata"].get("namespace")
    if about.get("namespace") not in (None, "", namespace) or (not about.get("namespace") and namespace != "default"):
        yield bad_value("involvedObject.namespace", about.get("namespace", ""), "does not match event.namespace")


def _config_map(config_map: Object) -> Iterator[FieldError]:
    for group in ("data", "binaryData"):
        for key in config_map.get(group) or ():
            if not key or len(key) > 253 or not all(c.isalnum() or c in "-_." for c in key):
                yield bad_value(
                    f"{group}[{key}]",
                    key,
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
                )


_CHECKS: dict[str, Callable[[Object], Iterable[FieldError]]] = {
    "pods": _pod,
    "nodes": _node,
    "configmaps": _config_map,
    "secrets": _config_map,
    "events": _event,
    "jobs.batch": _job,
    "leases.coordination.k8s.io": _lease,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "customresourcedefinitions.apiextensions.k8s.io": definition_errors,
}


def _changed(obj: Object, old: Object, *paths: str) -> Iterator[FieldError]:
    for path in paths:
        if dig(obj, path) != dig(old, path):
            yield bad_value(path, dig(obj, path), _IMMUTABLE)


def _job_change(job: Object, old: Object) -> Iterator[FieldError]:
    elastic = dig(job, "spec.completionMode") == "Indexed" and dig(job, "spec.completions") == dig(
        job, "spec.parallelism"
    )
    fixed = ["spec.selector", "spec.template", "spec.completionMode"]
    if dig(old, "spec.suspend") and not dig(old, "status.startTime"):
        fixed.remove("spec.template")  # queueing systems inject node selectors before a suspended job starts
    yield from _changed(job, old, *fixed, *(() if elastic else ("spec.completions",)))


def _priority_class_change(obj: Object, old: Object) -> Iterator[FieldError]:
    for path in ("value", "preemptionPolicy"):
        if obj[path] != old[path]:
            yield not_allowed(path, "may not be changed in an update.")


def _config_map_change(obj: Object, old: Object) -> Iterator[FieldError]:
    if not old.get("immutable"):
        return
    for key in ("data", "binaryData", "immutable"):
        if obj.get(key) != old.get(key):
            yield not_allowed(key, "field is immutable when `immutable` is set")


def _definition_change(obj: Object, old: Object) -> Iterator[FieldError]:
    yield from _changed(obj, old, "spec.group", "spec.scope", "spec.names.plural", "spec.names.kind")
    if dig(old, "metadata.deletionTimestamp") and CRD_CLEANUP in (dig(old, "metadata.finalizers") or ()):
        changed = wanted_state(copy(obj)) != wanted_state(copy(old))
        if changed:
            yield not_allowed("spec", "the definition is being deleted")


_COMPARISONS: dict[str, Callable[[Object, Object], Iterable[FieldError]]] = {
    "pods": pod_update_errors,
    "jobs.batch": _job_change,
    "priorityclasses.scheduling.k8s.io": _priority_class_change,
    "configmaps": _config_map_change,
    "secrets": _config_map_change,
    "customresourcedefinitions.apiextensions.k8s.io": _definition_change,
}
