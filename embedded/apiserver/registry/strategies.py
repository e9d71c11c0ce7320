"""What the server decides about an object: life cycle, priority, tolerations, fields clients may not set."""

from __future__ import annotations

from collections.abc import Callable

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import bad_value
from embedded.apiserver.apimachinery.objects import Object, dig, ensure, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.pod_qos import qos_class
from embedded.apiserver.apimachinery.resource_types import (
    CUSTOM_RESOURCE_DEFINITIONS,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    SERVICES,
    STORAGE_CLASSES,
    ResourceType,
)
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.registry.label_keys import merge_label_keys
from embedded.apiserver.registry.pod_resizes import keep_all_but_resources
from embedded.apiserver.registry.pod_service_accounts import admit_pod_account
from embedded.apiserver.registry.service_addresses import keep_address, settle_address
from embedded.apiserver.registry.service_ports import keep_ports, settle_ports
from embedded.apiserver.registry.stored_objects import StoredObjects
from embedded.apiserver.registry.taints import NO_SCHEDULE, NOT_READY

IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
CRD_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_EVICTION_TOLERATION_SECONDS = 300
# Main-resource writes of these carry their status at birth; everyone else's status starts empty.
BORN_WITH_STATUS = frozenset({"nodes", "services"})


# -- creation -------------------------------------------------------------------------------------------------


def check_namespace(stored: StoredObjects, rtype: ResourceType, obj: Object) -> None:
    """Refuse content for a namespace that does not exist (404) or is going away (403)."""
    if not rtype.namespaced:
        return
    name = namespace_of(obj)
    namespace = stored.store.get(NAMESPACES.id, "", name)
    if namespace is None:
        raise status.not_found(NAMESPACES, name)
    if namespace.deleting:
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {name} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {name} because it is being terminated"
        raise status.forbidden(rtype, name_of(obj), why, [cause])


def check_definition(stored: StoredObjects, rtype: ResourceType, name: str) -> None:
    """Refuse custom objects (403) whose definition is going away."""
    held = stored.store.get(CUSTOM_RESOURCE_DEFINITIONS.id, "", rtype.id) if rtype.custom is not None else None
    if held is not None and held.deleting:
        why = "create not allowed while custom resource definition is terminating"
        raise status.forbidden(rtype, name, why)


# Without a time, as `applySchedulingGatedCondition` of kube-apiserver makes it.
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def reset_status(rtype: ResourceType, obj: Object) -> None:
    """Forget a status sent at creation where the status sub-resource is the way to set it."""
    if rtype.has_status and rtype.id not in BORN_WITH_STATUS:
        obj.pop("status", None)
    if rtype is PODS:
        obj["status"] = {"phase": "Pending"}
        if dig(obj, "spec.schedulingGates"):
            obj["status"]["conditions"] = [dict(_GATED)]
    if rtype is NAMESPACES:
        obj["status"] = {"phase": "Active"}
    if rtype in (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS):
        obj["status"] = {"phase": "Pending"}


def admit_new(stored: StoredObjects, rtype: ResourceType, obj: Object) -> None:
    """Fill in what cluster state decides; raises 403 when that state refuses the object."""
    admit = _ADMIT_NEW.get(rtype.id)
    if admit is not None:
        admit(stored, obj)


def _check_runtime(pod: Object) -> None:
    """No RuntimeClass is served here, so none can be asked for."""
    if name := pod["spec"].get("runtimeClassName"):
        raise status.forbidden(PODS, name_of(pod), f'pod rejected: RuntimeClass "{name}" not found')
    if pod["spec"].get("overhead"):
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise status.forbidden(PODS, name_of(pod), why)


def _admit_pod(stored: StoredObjects, pod: Object) -> None:
    _check_runtime(pod)
    admit_pod_account(stored, pod)
    _settle_priority(stored, PODS, pod)
    _tolerate_lost_nodes(pod["spec"])
    merge_label_keys(pod["spec"], dig(pod, "metadata.labels") or {})


def _admit_pod_group(stored: StoredObjects, group: Object) -> None:
    _settle_priority(stored, POD_GROUPS, group)


def _admit_claim(stored: StoredObjects, claim: Object) -> None:
    """A claim that names no class gets the newest of the default ones; an empty name asks for none."""
    if "storageClassName" in claim["spec"]:
        return
    mark = "storageclass.kubernetes.io/is-default-class"
    found = [
        each
        for each in stored.objects(STORAGE_CLASSES)
        if (dig(each, "metadata.annotations") or {}).get(mark) == "true"
    ]
    if found:
        newest = max(found, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each)))
        claim["spec"]["storageClassName"] = name_of(newest)


_IN_SPEC = {PODS.id: "pod spec", POD_GROUPS.id: "pod group spec"}


def _settle_priority(stored: StoredObjects, rtype: ResourceType, obj: Object) -> None:
    """Copy the priority of the named class (or of the global default) into a pod or PodGroup."""
    spec, place = obj["spec"], _IN_SPEC[rtype.id]
    wanted = spec.get("priorityClassName") or ""
    found = stored.find(PRIORITY_CLASSES, "", wanted) if wanted else _default_class(stored)
    if wanted and found is None:
        raise status.forbidden(rtype, name_of(obj), f"no PriorityClass with name {wanted} was found")
    value = int(found["value"]) if found else 0
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if spec.get("priority") not in (None, value):
        raise status.forbidden(
            rtype,
            name_of(obj),
            f"the integer value of priority ({spec['priority']}) must not be provided in {place}; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    if spec.get("preemptionPolicy") not in (None, policy):
        raise status.forbidden(
            rtype,
            name_of(obj),
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in {place}; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    if found:
        spec["priorityClassName"] = name_of(found)
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _default_class(stored: StoredObjects) -> Object | None:
    # Every pod without a class asks: what cannot be a default need not be decoded.
    likely = (r for r in stored.store.select(PRIORITY_CLASSES.id, EVERYTHING) if b'"globalDefault":true' in r.body)
    decoded = (stored.decoded(PRIORITY_CLASSES, record) for record in likely)
    defaults = [found for found in decoded if found.get("globalDefault")]
    return min(defaults, key=lambda found: (int(found["value"]), name_of(found)), default=None)


def _tolerate_lost_nodes(spec: Object) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if any(
            held.get("key") in (None, "", key) and held.get("effect") in (None, "", "NoExecute") for held in tolerations
        ):
            continue
        tolerations.append(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_TOLERATION_SECONDS}
        )


def _admit_node(_: StoredObjects, node: Object) -> None:
    """Nothing is placed on a node before the node controller has seen it ready.

    https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#taintnodesbycondition
    """
    taints = node["spec"].setdefault("taints", [])
    if all((taint["key"], taint["effect"]) != (NOT_READY, NO_SCHEDULE) for taint in taints):
        taints.append({"key": NOT_READY, "effect": NO_SCHEDULE})


def _admit_namespace(_: StoredObjects, namespace: Object) -> None:
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def _admit_priority_class(stored: StoredObjects, obj: Object) -> None:
    if obj.get("globalDefault"):
        _only_default(stored, obj)


def _only_default(stored: StoredObjects, obj: Object) -> None:
    for other in stored.objects(PRIORITY_CLASSES):
        if other.get("globalDefault") and name_of(other) != name_of(obj):
            why = f"PriorityClass {name_of(other)} is already marked as default. Only one default can exist"
            raise status.forbidden(PRIORITY_CLASSES, name_of(obj), why)


def _admit_definition(_: StoredObjects, definition: Object) -> None:
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CRD_CLEANUP not in finalizers:
        finalizers.append(CRD_CLEANUP)


def _admit_job(_: StoredObjects, job: Object) -> None:
    """Generate the selector from the job's uid, so that no two jobs ever count each other's pods."""
    spec, uid = job["spec"], uid_of(job)
    if spec.get("manualSelector"):
        return
    labels = ensure(ensure(spec["template"], "metadata"), "labels")
    for prefix in ("", "batch.kubernetes.io/"):
        labels.setdefault(f"{prefix}controller-uid", uid)
        labels.setdefault(f"{prefix}job-name", name_of(job))
    ensure(ensure(spec, "selector"), "matchLabels").setdefault("batch.kubernetes.io/controller-uid", uid)


def _admit_service(stored: StoredObjects, service: Object) -> None:
    settle_address(stored, service)
    settle_ports(stored, service)


_ADMIT_NEW: dict[str, Callable[[StoredObjects, Object], None]] = {
    PODS.id: _admit_pod,
    NAMESPACES.id: _admit_namespace,
    NODES.id: _admit_node,
    POD_GROUPS.id: _admit_pod_group,
    PERSISTENT_VOLUME_CLAIMS.id: _admit_claim,
    PRIORITY_CLASSES.id: _admit_priority_class,
    CUSTOM_RESOURCE_DEFINITIONS.id: _admit_definition,
    JOBS.id: _admit_job,
    SERVICES.id: _admit_service,
}


def complete(rtype: ResourceType, obj: Object) -> None:
    """Status fields that follow from the object itself."""
    if rtype is PODS:
        ensure(obj, "status")["qosClass"] = qos_class(obj)


# -- change ---------------------------------------------------------------------------------------------------


def admit_change(stored: StoredObjects, rtype: ResourceType, old: Object, new: Object) -> None:
    """Refuse changes that cluster state forbids."""
    if rtype is PRIORITY_CLASSES and new.get("globalDefault") and not old.get("globalDefault"):
        _only_default(stored, new)
    if rtype is PODS and isinstance(new.get("spec"), dict):
        _keep_decisions(old["spec"], new["spec"])
    if rtype is SERVICES and isinstance(new.get("spec"), dict):
        keep_address(stored, old, new)
        keep_ports(stored, old, new)


def _keep_decisions(old: Object, new: Object) -> None:
    """What admission decided when the pod was made stays decided for a manifest that does not mention it."""
    for key in ("priority", "preemptionPolicy"):
        if key in old:
            new.setdefault(key, old[key])
    _tolerate_lost_nodes(new)


def check_not_deleted_by(rtype: ResourceType, old: Object, new: Object, subresource: str) -> None:
    """Raises 422 for a change that says when the object is to go, which is for deletions to say.

    The status of a custom object carries no metadata, and that of a pod no time of deletion.
    """
    if subresource == "status" and rtype.custom is not None:
        return
    meta, old_meta, errors = new["metadata"], old["metadata"], []
    moment, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if moment and not old_meta.get("deletionTimestamp") and not (rtype is PODS and subresource == "status"):
        errors.append(bad_value("metadata.deletionTimestamp", moment, "field is immutable"))
    if grace not in (None, old_meta.get("deletionGracePeriodSeconds")):
        errors.append(bad_value("metadata.deletionGracePeriodSeconds", grace, "field is immutable"))
    if errors:
        raise status.invalid(rtype, old_meta["name"], errors)


def keep_server_fields(rtype: ResourceType, old: Object, new: Object, subresource: str) -> None:
    """Put back, in place, whatever the client may not change through this path."""
    if subresource == "resize":
        keep_all_but_resources(new, old)
    meta, old_meta = new["metadata"], old["metadata"]
    if subresource == "status":
        _keep_all_but(new, old, {"status", "metadata"})
        if rtype.custom is not None:
            new["metadata"] = meta = dict(old_meta)
        elif rtype is PODS:  # so that a node says nothing of whose pods its pods are
            _keep(meta, old_meta, "ownerReferences")
    elif subresource == "finalize":
        finalizers = dig(new, "spec.finalizers") or []
        _keep_all_but(new, old, {"metadata"})
        new["spec"] = {"finalizers": finalizers} if finalizers else {}
    elif subresource == "" and (rtype.has_status or rtype is PODS):
        _keep(new, old, "status")
        if rtype is NAMESPACES:
            _keep(new, old, "spec")
    for key in (
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ):
        _keep(meta, old_meta, key)
    if rtype is JOBS:
        _keep_generated_selector(old, new)


def _keep(new: Object, old: Object, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def _keep_all_but(new: Object, old: Object, free: set[str]) -> None:
    for key in {*new, *old} - free:
        _keep(new, old, key)


def _keep_generated_selector(old: Object, new: Object) -> None:
    """`kubectl replace` sends the manifest again, which knows nothing of the generated selector and labels."""
    spec, old_spec = new.get("spec"), old["spec"]
    if not isinstance(spec, dict) or old_spec.get("manualSelector"):
        return
    spec.setdefault("selector", old_spec["selector"])
    labels = ensure(ensure(ensure(spec, "template"), "metadata"), "labels")
    for key, value in (dig(old_spec, "template.metadata.labels") or {}).items():
        if key.rpartition("/")[2] in ("controller-uid", "job-name"):
            labels.setdefault(key, value)


def wanted_state(rtype: ResourceType, obj: Object) -> Object:
    """The part of an object whose change moves its generation; a status that is none by definition is part of it."""
    apart = {"metadata", "apiVersion", "kind"} | ({"status"} if rtype.has_status or rtype.custom is None else set())
    return {key: value for key, value in obj.items() if key not in apart}


# -- deletion -------------------------------------------------------------------------------------------------


def check_deletable(rtype: ResourceType, obj: Object) -> None:
    if rtype is NAMESPACES and name_of(obj) in IMMORTAL_NAMESPACES:
        raise status.forbidden(rtype, name_of(obj), "this namespace may not be deleted")


def grace_seconds(rtype: ResourceType, obj: Object, asked: int | None) -> int:
    """How long a deletion waits for the node. Only pods that a node may be running wait at all."""
    if rtype is not PODS or not dig(obj, "spec.nodeName"):
        return 0
    if dig(obj, "status.phase") in ("Succeeded", "Failed"):
        return 0
    own = int(dig(obj, "spec.terminationGracePeriodSeconds", 30))
    wanted = own if asked is None else asked
    return 1 if wanted < 0 else wanted


def default_propagation(rtype: ResourceType, finalizers: list[str]) -> str | None:
    """What a deletion that names no policy does with dependents: Jobs leave their pods behind, for old clients' sake.

    https://kubernetes.io/docs/concepts/architecture/garbage-collection/#orphan-dependents
    """
    return "Orphan" if rtype is JOBS and "foregroundDeletion" not in finalizers else None


def mark_terminating(rtype: ResourceType, obj: Object) -> None:
    if rtype is NAMESPACES:
        ensure(obj, "status")["phase"] = "Terminating"
