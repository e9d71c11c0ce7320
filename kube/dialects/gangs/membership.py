"""A pod's words about its gang: labels and annotations of Koordinator, scheduler-plugins, Volcano and Kueue, and
spec.schedulingGroup.

Source: Koordinator apis/extension/coscheduling.go and pkg/scheduler/plugins/coscheduling/core/gang.go; volcano.sh/apis
pkg/apis/scheduling/v1beta1/labels.go; https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/#running-a-group-of-pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from kube.dialects.documents.duration import go_duration_seconds
from kube.dialects.gangs import networktopology
from kube.objects import Metadata, SchedulingGroup
from model.fault import ConfigurationFault
from model.workload import (
    DEFAULT_GANG_TIMEOUT_SECONDS,
    GangMembership,
    GangMode,
    GangSource,
    GangSpec,
    MatchPolicy,
)

LABEL_POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
LABEL_LIGHTWEIGHT_NAME = "pod-group.scheduling.sigs.k8s.io/name"
LABEL_LIGHTWEIGHT_MIN = "pod-group.scheduling.sigs.k8s.io/min-available"
_GANG = "gang.scheduling.koordinator.sh/"
ANNOTATION_NAME = _GANG + "name"
ANNOTATION_MIN = _GANG + "min-available"
ANNOTATION_MODE = _GANG + "mode"
ANNOTATION_WAIT = _GANG + "waiting-time"
ANNOTATION_GROUPS = _GANG + "groups"
ANNOTATION_MATCH = _GANG + "match-policy"
ANNOTATION_MATCH_ALIAS = "pod-group.scheduling.sigs.k8s.io/match-policy"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
"""Label of pods that Kueue admits together."""
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_FAST = "kueue.x-k8s.io/pod-group-fast-admission"
"""Annotation `true`: the group need not wait for pods that do not exist yet."""
WAITING_TIMES = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
"""Annotations of a PodGroup, the first one counts: after so long in its queue the gang goes before others."""
VOLCANO_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
"""Annotations that name a PodGroup of Volcano."""
_MOST_GROUPS = 64
_NAME = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_.-]{0,251}[0-9A-Za-z])?")
_NO_NAME = "?"
"""Begins no name, so that nothing else is called like the gang of a pod whose annotation cannot be read."""
_MATCHES = {member.value: member for member in MatchPolicy}
_RANKS = (
    _GANG + "network-topology-index",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)


class GangDefaults(msgspec.Struct, frozen=True):
    """What counts where a gang does not say (Koordinator CoschedulingArgs).

    `raises`: the priority that a gang's object names counts even where it is above that of its pods.
    """

    timeout_seconds: float = DEFAULT_GANG_TIMEOUT_SECONDS
    match: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    raises: bool = False


USUAL = GangDefaults()


def gang_of(
    metadata: Metadata, group: SchedulingGroup | None = None, defaults: GangDefaults = USUAL
) -> GangMembership | None:
    """A pod's gang: PodGroup label first, then the lightweight label, the annotation, spec.schedulingGroup, Volcano's,
    Kueue's.

    An annotation may hold any text. One that is no name makes a gang of that pod alone, which is held and says so: a
    comma would name the gangs of others.
    """
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    if name := labels.get(LABEL_POD_GROUP):
        return GangMembership(metadata.namespace, name, GangSource.POD_GROUP)
    if name := labels.get(LABEL_LIGHTWEIGHT_NAME) or annotations.get(ANNOTATION_NAME, ""):
        if not _NAME.fullmatch(name):
            return _misnamed(metadata, ANNOTATION_NAME, name)
        minimum = labels.get(LABEL_LIGHTWEIGHT_MIN) or annotations.get(ANNOTATION_MIN)
        spec = _annotated_spec(minimum, ANNOTATION_MIN, f"{metadata.namespace}/{name}", annotations, defaults)
        return GangMembership(metadata.namespace, name, GangSource.ANNOTATION, spec)
    if group is not None and group.pod_group_name:
        return GangMembership(metadata.namespace, group.pod_group_name, GangSource.UPSTREAM)
    for key in VOLCANO_NAMES:
        if name := annotations.get(key, ""):
            known = _NAME.fullmatch(name)
            return (
                GangMembership(metadata.namespace, name, GangSource.VOLCANO)
                if known
                else _misnamed(metadata, key, name)
            )
    if name := labels.get(KUEUE_GROUP):
        minimum = "1" if annotations.get(KUEUE_FAST) == "true" else annotations.get(KUEUE_TOTAL)
        spec = _annotated_spec(minimum, KUEUE_TOTAL, f"{metadata.namespace}/{name}", annotations, defaults)
        return GangMembership(metadata.namespace, name, GangSource.ANNOTATION, spec)
    return None


def _misnamed(metadata: Metadata, key: str, name: str) -> GangMembership:
    told = f"annotation {key} is {name[:60]!r}; write letters, digits, - _ and . only"
    own = f"{_NO_NAME}{metadata.name}"
    return GangMembership(metadata.namespace, own, GangSource.ANNOTATION, GangSpec(0, problem=told))


def rank_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> int:
    """A pod's index in its gang: in the topology, else among its Job's or StatefulSet's pods; -1 without one."""
    if not any(key in annotations or key in labels for key in _RANKS):
        return -1
    told = next(annotations.get(key) or labels.get(key) or "" for key in _RANKS if key in annotations or key in labels)
    index = whole(told)
    return index if index is not None and index >= 0 else -1


def _annotated_spec(
    minimum: str | None, annotation: str, key: str, annotations: Mapping[str, str], defaults: GangDefaults
) -> GangSpec:
    if minimum is None:
        return GangSpec(0, problem=f"annotation {annotation} is missing; set it to the number of members needed")
    count = whole(minimum)
    if count is None or count < 1:
        told = f"annotation {annotation} is {minimum[:60]!r}"
        return GangSpec(0, problem=f"{told}; write a whole number of 1 or more")
    return spec_of(count, key, annotations, defaults, go_duration_seconds(annotations.get(ANNOTATION_WAIT, "")))


def spec_of(
    minimum: int,
    key: str,
    annotations: Mapping[str, str],
    defaults: GangDefaults = USUAL,
    timeout_seconds: float | None = None,
) -> GangSpec:
    """What annotations on a pod or PodGroup say of the gang `key`.

    Illegal mode, time, match policy and groups fall back as Koordinator does: Strict, the defaults, alone. A topology
    that cannot be read is a `problem`: members are not spread by guesswork. So is a group of too many gangs, each of
    which is looked at whenever one of them changes.
    """
    loose = annotations.get(ANNOTATION_MODE) == GangMode.NON_STRICT.value
    groups = groups_of(key, annotations.get(ANNOTATION_GROUPS, ""))
    if len(groups) > _MOST_GROUPS:
        told = f"annotation {ANNOTATION_GROUPS} names {len(groups)} gangs"
        return GangSpec(0, problem=f"Gang {key}: {told}; name at most {_MOST_GROUPS}")
    try:
        topology = networktopology.levels(annotations, f"Gang {key}")
    except ConfigurationFault as fault:
        return GangSpec(0, problem=str(fault))
    return GangSpec(
        min_member=minimum,
        mode=GangMode.NON_STRICT if loose else GangMode.STRICT,
        timeout_seconds=timeout_seconds if timeout_seconds and timeout_seconds > 0 else defaults.timeout_seconds,
        match=_match(annotations, defaults),
        groups=groups,
        topology=topology,
        wait_seconds=wait_seconds(annotations),
    )


def wait_seconds(annotations: Mapping[str, str]) -> float:
    """How long a gang waits in its queue before it goes before others; 0 for ever, as for what is no duration."""
    told = next((text for key in WAITING_TIMES if (text := annotations.get(key))), "")
    return go_duration_seconds(told) or 0.0


def _match(annotations: Mapping[str, str], defaults: GangDefaults) -> MatchPolicy:
    told = annotations.get(ANNOTATION_MATCH) or annotations.get(ANNOTATION_MATCH_ALIAS) or ""
    return _MATCHES.get(told, defaults.match)


def groups_of(key: str, text: str) -> tuple[str, ...]:
    """The gangs of a JSON list of `namespace/name` and the gang itself, sorted; empty where it goes alone.

    A name without a namespace is one of the gang's own namespace; a list with a text that is no name is unreadable.
    """
    namespace = key.partition("/")[0]
    found = {each if "/" in each else f"{namespace}/{each}" for each in _listed(text) or () if each} | {key}
    return tuple(sorted(found)) if len(found) > 1 else ()


def reads_groups(text: str) -> bool:
    """Whether it is such a list."""
    return _listed(text) is not None


def reads_match(text: str) -> bool:
    """Whether it is a match policy."""
    return text in _MATCHES


def _listed(text: str) -> list[str] | None:
    try:
        told = msgspec.json.decode(text, type=list[str] | None) if text else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    names = all(_NAME.fullmatch(part) for each in told or () if each for part in each.split("/", 1))
    return (told or []) if names else None


def whole(text: str) -> int | None:
    """A whole number as Go reads an int32 of up to nine digits; None where it is none."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,9}", text, re.ASCII) else None
