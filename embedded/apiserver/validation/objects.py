"""What is wrong with an object, as a list of field errors: per type, and against what it was before."""

from collections.abc import Callable, Iterable, Iterator

from embedded.apiserver.apiextensions.definition_validation import change_errors as definition_change_errors
from embedded.apiserver.apiextensions.definition_validation import definition_errors, new_definition_errors
from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.event_forms import EVENTS_V1, event_change_errors, new_event_errors
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.validation.admission_policies import policy_binding_errors, policy_errors
from embedded.apiserver.validation.admission_webhooks import configuration_errors
from embedded.apiserver.validation.configmaps_and_secrets import (
    config_map_changes,
    config_map_errors,
    secret_changes,
    secret_errors,
)
from embedded.apiserver.validation.containers import is_extended
from embedded.apiserver.validation.endpoints import endpoint_slice_changes, endpoint_slice_errors, endpoints_errors
from embedded.apiserver.validation.jobs import cron_job_errors, generated_errors, job_errors, job_update_errors
from embedded.apiserver.validation.label_selectors import label_selector_errors
from embedded.apiserver.validation.network_policies import network_policy_errors
from embedded.apiserver.validation.pod_groups import pod_group_changes, pod_group_errors
from embedded.apiserver.validation.pod_hosts import new_pod_errors
from embedded.apiserver.validation.pod_resizes import pod_resize_errors
from embedded.apiserver.validation.pods import pod_spec_errors, pod_update_errors
from embedded.apiserver.validation.quotas import quota_changes, quota_errors
from embedded.apiserver.validation.roles import (
    binding_changes,
    cluster_role_binding_errors,
    cluster_role_errors,
    role_binding_errors,
    role_errors,
)
from embedded.apiserver.validation.services import service_changes, service_errors
from embedded.apiserver.validation.volumes import (
    claim_changes,
    claim_errors,
    class_changes,
    class_errors,
    volume_changes,
    volume_errors,
)
from embedded.apiserver.validation.workloads import (
    controller_revision_changes,
    controller_revision_errors,
    daemon_set_errors,
    deployment_errors,
    replica_set_errors,
    replication_controller_errors,
    selector_changes,
    stateful_set_changes,
    stateful_set_errors,
)
from embedded.quantity import parse

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def errors(rtype: ResourceType, obj: Object, old: Object | None, subresource: str = "") -> Iterator[FieldError]:
    """Every field error of an object; `old` is what it replaces, None for a new one."""
    yield from names.metadata_errors(rtype, obj)
    if rtype.custom is not None:
        yield from rtype.custom.errors(obj, old)
    elif check := _CHECKS.get(rtype.id):
        yield from check(obj)
    if old is None:
        if check := _NEW_CHECKS.get(rtype.id):
            yield from check(obj)
        return
    if rtype is EVENTS_V1:
        yield from event_change_errors(obj, old)
    yield from _new_finalizers(obj, old)
    if compare := _STATUS_COMPARISONS.get(rtype.id):
        yield from compare(obj, old)
    if not subresource and (compare := _COMPARISONS.get(rtype.id)):
        yield from compare(obj, old)
    if subresource == "resize":
        yield from pod_resize_errors(obj, old)


def _new_finalizers(obj: Object, old: Object) -> Iterator[FieldError]:
    if not dig(old, "metadata.deletionTimestamp"):
        return
    added = set(dig(obj, "metadata.finalizers") or ()) - set(dig(old, "metadata.finalizers") or ())
    if added:
        yield not_allowed(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}",
        )


def _namespace(namespace: Object) -> Iterator[FieldError]:
    for index, finalizer in enumerate(dig(namespace, "spec.finalizers") or ()):
        path = f"spec.finalizers[{index}]"
        yield from names.qualified_name(path, finalizer)
        yield from names.whole_finalizer(path, finalizer)
    phase, wanted = dig(namespace, "status.phase"), ("Active", "empty")
    if being_deleted(namespace):
        wanted = ("Terminating", "not empty")
    if phase != wanted[0]:
        why = f"may only be '{wanted[0]}' if `deletionTimestamp` is {wanted[1]}"
        yield bad_value("status.Phase", phase, why)


def _pod(pod: Object) -> Iterator[FieldError]:
    yield from pod_spec_errors("spec", pod["spec"])


def _node(node: Object) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(dig(node, "spec.taints") or ()):
        path = f"metadata.taints[{index}]"  # as upstream
        yield from names.qualified_name(f"{path}.key", taint["key"])
        yield from names.label_value(f"{path}.value", taint.get("value") or "")
        if not taint["effect"]:
            yield required(f"{path}.effect")
        elif taint["effect"] not in _TAINT_EFFECTS:
            yield not_supported(f"{path}.effect", taint["effect"], _TAINT_EFFECTS)
        if (taint["key"], taint["effect"]) in seen:
            yield duplicate(path, taint, "taints must be unique by key and effect pair")
        seen.add((taint["key"], taint["effect"]))
    yield from _node_ranges(dig(node, "spec.podCIDRs") or [])
    for group in ("capacity", "allocatable"):
        for resource, amount in (dig(node, f"status.{group}") or {}).items():
            if amount.startswith("-"):
                yield bad_value(f"status.{group}.{resource}", amount, "must be greater than or equal to 0")
            elif is_extended(resource) and parse(amount).denominator != 1:
                yield bad_value(f"status.{group}.{resource}", amount, "must be an integer")


def _node_addresses_change(node: Object, _: Object) -> Iterator[FieldError]:
    """As upstream, which looks at them only when the node changes."""
    addresses = dig(node, "status.addresses") or []
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            yield duplicate(f"status.addresses[{index}]", address)


def _node_ranges(ranges: list[str]) -> Iterator[FieldError]:
    for index, found in enumerate(ranges):
        if not names.is_range(found):
            rule = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield bad_value(f"spec.podCIDRs[{index}]", found, rule)
    families = [":" in found for found in ranges]
    if len(set(families)) < len(families):
        yield bad_value("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def _natural(path: str, value: int | None, least: int = 0) -> Iterator[FieldError]:
    if value is not None and value < least:
        yield bad_value(
            path, value, f"must be greater than or equal to {least}" if least == 0 else "must be greater than 0"
        )


def _budget(budget: Object) -> Iterator[FieldError]:
    spec = budget.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield bad_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        yield from _int_or_percent(f"spec.{key}", spec.get(key))
    yield from label_selector_errors("spec.selector", spec.get("selector"))
    policy, policies = spec.get("unhealthyPodEvictionPolicy"), ("AlwaysAllow", "IfHealthyBudget")
    if policy is not None and policy not in policies:
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, policies)


def _int_or_percent(path: str, value: int | str | None) -> Iterator[FieldError]:
    if isinstance(value, int):
        yield from _natural(path, value)
    elif isinstance(value, str):
        if not (value.endswith("%") and value[:-1].isdecimal()):
            yield bad_value(path, value, "a valid percent string must be a numeric string followed by an ending '%'")
        elif (percent := natural(value[:-1])) is None or percent > 100:
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


def _pod_template(obj: Object) -> Iterator[FieldError]:
    yield from names.labels("template.labels", dig(obj, "template.metadata.labels"))
    yield from pod_spec_errors("template.spec", obj["template"]["spec"])


_CHECKS: dict[str, Callable[[Object], Iterable[FieldError]]] = {
    "pods": _pod,
    "namespaces": _namespace,
    "nodes": _node,
    "configmaps": config_map_errors,
    "secrets": secret_errors,
    "services": service_errors,
    "endpoints": endpoints_errors,
    "networkpolicies.networking.k8s.io": network_policy_errors,
    "endpointslices.discovery.k8s.io": endpoint_slice_errors,
    "controllerrevisions.apps": controller_revision_errors,
    "daemonsets.apps": daemon_set_errors,
    "deployments.apps": deployment_errors,
    "replicasets.apps": replica_set_errors,
    "replicationcontrollers": replication_controller_errors,
    "statefulsets.apps": stateful_set_errors,
    "podtemplates": _pod_template,
    "resourcequotas": quota_errors,
    "events": _event,
    "cronjobs.batch": cron_job_errors,
    "jobs.batch": job_errors,
    "leases.coordination.k8s.io": _lease,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "podgroups.scheduling.k8s.io": pod_group_errors,
    "persistentvolumes": volume_errors,
    "persistentvolumeclaims": claim_errors,
    "storageclasses.storage.k8s.io": class_errors,
    "clusterrolebindings.rbac.authorization.k8s.io": cluster_role_binding_errors,
    "clusterroles.rbac.authorization.k8s.io": cluster_role_errors,
    "rolebindings.rbac.authorization.k8s.io": role_binding_errors,
    "roles.rbac.authorization.k8s.io": role_errors,
    "customresourcedefinitions.apiextensions.k8s.io": definition_errors,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": configuration_errors,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": configuration_errors,
    "validatingadmissionpolicies.admissionregistration.k8s.io": policy_errors,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": policy_binding_errors,
}


# Of what is new, besides.
_NEW_CHECKS: dict[str, Callable[[Object], Iterable[FieldError]]] = {
    EVENTS_V1.id: new_event_errors,
    "jobs.batch": generated_errors,
    "pods": new_pod_errors,
    "customresourcedefinitions.apiextensions.k8s.io": new_definition_errors,
}


def _node_change(node: Object, old: Object) -> Iterator[FieldError]:
    """What names a node's place stays once it is known."""
    new_spec, old_spec = node.get("spec") or {}, old.get("spec") or {}
    for key, told, path in (("podCIDRs", "podCIDR", "podCIDRs"), ("providerID", "providerID", "providerID")):
        if old_spec.get(key) and new_spec.get(key) != old_spec[key]:
            yield not_allowed(f"spec.{path}", f'node updates may not change {told} except from "" to valid')
    if new_spec.get("externalID") != old_spec.get("externalID"):
        yield not_allowed("spec.externalID", "may not be updated")


def _priority_class_change(obj: Object, old: Object) -> Iterator[FieldError]:
    for path in ("value", "preemptionPolicy"):
        if obj[path] != old[path]:
            yield not_allowed(path, "may not be changed in an update.")


_COMPARISONS: dict[str, Callable[[Object, Object], Iterable[FieldError]]] = {
    "nodes": _node_change,
    "pods": pod_update_errors,
    "services": service_changes,
    "endpointslices.discovery.k8s.io": endpoint_slice_changes,
    "controllerrevisions.apps": controller_revision_changes,
    "daemonsets.apps": selector_changes,
    "deployments.apps": selector_changes,
    "replicasets.apps": selector_changes,
    "statefulsets.apps": stateful_set_changes,
    "jobs.batch": job_update_errors,
    "priorityclasses.scheduling.k8s.io": _priority_class_change,
    "configmaps": config_map_changes,
    "secrets": secret_changes,
    "resourcequotas": quota_changes,
    "podgroups.scheduling.k8s.io": pod_group_changes,
    "persistentvolumes": volume_changes,
    "persistentvolumeclaims": claim_changes,
    "storageclasses.storage.k8s.io": class_changes,
    "clusterrolebindings.rbac.authorization.k8s.io": binding_changes,
    "rolebindings.rbac.authorization.k8s.io": binding_changes,
    "customresourcedefinitions.apiextensions.k8s.io": definition_change_errors,
}
# Also where only the status is written.
_STATUS_COMPARISONS: dict[str, Callable[[Object, Object], Iterable[FieldError]]] = {"nodes": _node_addresses_change}
