"""One profile applied to one pod, step by step in Koordinator's order.

Source: Koordinator pkg/webhook/pod/mutating/cluster_colocation_profile.go (doMutateByColocationProfile).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from admission.core.podfields import (
    LABEL_QOS,
    LABEL_SUB_PRIORITY,
    Document,
    Pod,
    annotations_of,
    labels_of,
    with_metadata,
    with_spec,
)
from model.priority import PriorityClass
from model.profile import ColocationProfile

Merge = Callable[[Document, Any], Document]
"""A strategic merge patch applied to a pod; raises ValueError where it cannot be."""


class NotApplicable(ValueError):
    """The profile cannot be applied to the pod, which must not be created without it; the message says why."""


def applied(pod: Pod, profile: ColocationProfile, classes: Mapping[str, PriorityClass], merge: Merge) -> Document:
    """The pod as the profile makes it; later steps see what earlier ones did. Raises NotApplicable.

    A key mapping from a key that is not there does nothing, and a suffix that is there already is not added again, so
    that a pod that comes by a second time stays as it is.
    """
    changed = with_metadata(pod, "labels", profile.labels)
    changed = with_metadata(changed, "annotations", profile.annotations)
    changed = with_metadata(changed, "labels", _mapped(profile.label_keys, labels_of(changed)))
    changed = with_metadata(changed, "annotations", _mapped(profile.annotation_keys, annotations_of(changed)))
    changed = with_metadata(changed, "labels", _suffixed(profile.label_suffixes, labels_of(changed)))
    if profile.scheduler_name:
        changed = with_spec(changed, {"schedulerName": profile.scheduler_name})
    changed = with_metadata(changed, "labels", _class_labels(profile))
    if profile.priority_class_name:
        changed = with_spec(changed, _priority(profile, classes))
    return _patched(changed, profile, merge)


def _mapped(keys: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {new: found[old] for old, new in sorted(keys.items()) if old in found}


def _suffixed(suffixes: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {
        key: found[key] if found[key].endswith(suffix) else found[key] + suffix
        for key, suffix in suffixes.items()
        if key in found
    }


def _class_labels(profile: ColocationProfile) -> dict[str, str]:
    """The sub-priority belongs after the priority class, which does not touch labels: one change does for both."""
    qos = {LABEL_QOS: profile.qos.value} if profile.qos else {}
    return qos if profile.sub_priority is None else {**qos, LABEL_SUB_PRIORITY: str(profile.sub_priority)}


def _priority(profile: ColocationProfile, classes: Mapping[str, PriorityClass]) -> dict[str, Any]:
    """All three, since the API server refuses a pod whose number or policy is not that of its class."""
    found = classes.get(profile.priority_class_name)
    if found is None:
        name = profile.priority_class_name
        raise NotApplicable(
            f"profile {profile.name}: spec.priorityClassName {name} does not exist; create PriorityClass {name}, or "
            "name another in the profile"
        )
    return {"priorityClassName": found.name, "priority": found.value, "preemptionPolicy": found.policy.value}


def _patched(pod: Document, profile: ColocationProfile, merge: Merge) -> Document:
    if profile.patch is None:
        return pod
    try:
        return merge(pod, profile.patch)
    except ValueError as error:
        raise NotApplicable(f"profile {profile.name}: spec.patch cannot be applied: {error}; mend the patch") from None
