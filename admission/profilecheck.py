"""Check of a ClusterColocationProfile: a wrong one would refuse every pod that it selects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from admission.check_result import CheckContext, CheckResult
from admission.core.podfields import LABEL_QOS, LABEL_SUB_PRIORITY, labels_of
from kube.dialects.koordinator.profiles import profile as read
from kube.objects import ClusterColocationProfile
from kube.podmerge import merge_pod
from kube.strategic import MergeError
from model.priority import PriorityClass
from model.profile import ColocationProfile
from model.qos import PriorityBand, QoSClass, priority_band

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_KEY = re.compile(rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
_LONGEST_DOMAIN = 253
_BE_BANDS = (PriorityBand.MID, PriorityBand.BATCH, PriorityBand.FREE)


def check_profile(source: ClusterColocationProfile, surroundings: CheckContext) -> CheckResult:
    """What makes the profile, or the pods that it is applied to, unacceptable; and what will surprise its writer."""
    found = read(source)
    if found.fault:
        return CheckResult((found.fault,))
    where = f"ClusterColocationProfile {found.name}: spec"
    classes = surroundings.classes()
    others = [each for each in surroundings.profiles() if each.name != found.name]
    refusals = (*_misnamed(found, where), *_unmergeable(found, where), *_impossible(found, classes, where))
    warnings = (*_classless(found, classes, where), *_entangled(found, others, where))
    return CheckResult(refusals, warnings)


def _misnamed(profile: ColocationProfile, where: str) -> Iterator[str]:
    """Keys and values that the API server refuses on a pod."""
    keys = {
        "labels": profile.labels,
        "annotations": profile.annotations,
        "labelKeysMapping": profile.label_keys.values(),
        "annotationKeysMapping": profile.annotation_keys.values(),
    }
    for field, names in keys.items():
        for key in names:
            if not _KEY.fullmatch(key) or len(key.rpartition("/")[0]) > _LONGEST_DOMAIN:
                yield f"{where}.{field}: {key!r} is no valid key; write [domain/]name"
    for key, value in profile.labels.items():
        if not _VALUE.fullmatch(value):
            yield f"{where}.labels[{key}]: {value[:80]!r} is no valid label value; use up to 63 letters, digits, - _ ."


def _unmergeable(profile: ColocationProfile, where: str) -> Iterator[str]:
    try:
        merge_pod({"metadata": {}, "spec": {}}, profile.patch or {})
    except MergeError as error:
        yield f"{where}.patch: {error}; write a strategic merge patch of a pod"


def _impossible(profile: ColocationProfile, classes: Mapping[str, PriorityClass], where: str) -> Iterator[str]:
    """A class that no pod of the QoS class may have: each pod would be refused."""
    known = classes.get(profile.priority_class_name)
    if profile.qos is QoSClass.BE and known and priority_band(None, known.value, QoSClass.LS) not in _BE_BANDS:
        yield f"{where}: qosClass BE and priorityClassName {known.name} cannot be used in combination; use koord-batch"


def _classless(profile: ColocationProfile, classes: Mapping[str, PriorityClass], where: str) -> Iterator[str]:
    name = profile.priority_class_name
    if name and name not in classes:
        yield f"{where}.priorityClassName: PriorityClass {name} does not exist; pods are refused until it does"


def _entangled(profile: ColocationProfile, others: Iterable[ColocationProfile], where: str) -> Iterator[str]:
    """Pods may come by twice; then they are selected by labels that profiles wrote the first time."""
    written = _written(profile)
    for each in (profile, *others):
        for key in sorted(written & {requirement.key for requirement in each.pods.requirements}):
            yield (
                f"{where}: writes label {key}, by which profile {each.name} selects; "
                "a pod may be selected differently when it comes by a second time"
            )


def _written(profile: ColocationProfile) -> set[str]:
    own = {LABEL_QOS} if profile.qos else set()
    if profile.sub_priority is not None:
        own.add(LABEL_SUB_PRIORITY)
    try:
        patched = labels_of(merge_pod({}, profile.patch or {}))
    except MergeError:
        patched = {}
    return {*profile.labels, *profile.label_keys.values(), *profile.label_suffixes, *patched, *own}
