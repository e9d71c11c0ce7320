"""Checks of written objects: one line a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from admission.check_result import CheckContext, CheckResult
from admission.configcheck import NAME, check_config, check_scheduler_config
from admission.jobcheck import check_training_job
from admission.kueuecheck import (
    check_deleted_cluster_queue,
    check_flavor,
    check_kueue_queue,
    check_local_queue,
    check_topology,
    check_workload_priority,
)
from admission.profilecheck import check_profile
from admission.queuecheck import check_deleted_queue, check_queue, check_quota_profile, check_volcano_group
from kube.dialects import misread
from kube.dialects.coverage.asking_pods import in_pod_group, in_profile
from kube.dialects.coverage.asking_scheduler import in_scheduler_config
from kube.dialects.coverage.asking_settings import in_config, in_node_slo
from kube.dialects.coverage.rows import Asked, sentence
from kube.dialects.coverage.rules import flaws
from kube.dialects.koordinator.nodeslo import (
    EvictionFields,
    SuppressFields,
    SwitchFields,
    slo_host_applications,
    slo_others,
    slo_threshold,
)
from kube.dialects.koordinator.schedulerconfig import NAME as SCHEDULER_NAME
from kube.dialects.koordinator.slosections import slo_sections
from kube.dialects.unserved import KINDS as UNSERVED_KINDS
from kube.dialects.unserved import UnservedKind, held_for_ever, in_metadata, kind_sentence
from kube.objects import (
    ClusterColocationProfile,
    ClusterQueue,
    Cohort,
    ConfigMap,
    ElasticQuota,
    ElasticQuotaProfile,
    LocalQueue,
    Metadata,
    NodeSLO,
    Queue,
    ResourceFlavor,
    Topology,
    TrainingJob,
    VolcanoPodGroup,
    VolcanoQueue,
    WorkloadPriorityClass,
)
from model.fault import ConfigurationFault
from model.suspended.job import QUEUE_NAME

T = TypeVar("T")

Check = Callable[[Any, CheckContext], CheckResult]
DESCHEDULER_NAME = "koord-descheduler-config"
_NO_DESCHEDULER = "there is no descheduler; Kubernetes' own may run beside Sublet"


class _PodGroup(msgspec.Struct, frozen=True):
    """With every field of its spec."""

    metadata: Metadata = Metadata()
    spec: dict[str, Any] | None = None


def _of(kind: type[T], check: Callable[[T, CheckContext], CheckResult]) -> tuple[type, Check]:
    return kind, check


def check_named_config(source: ConfigMap, surroundings: CheckContext) -> CheckResult:
    """Other ConfigMaps are nobody's business here."""
    where = f"ConfigMap {source.metadata.namespace}/{source.metadata.name}"
    if source.metadata.name == DESCHEDULER_NAME:
        return CheckResult(warnings=(f"{where}: nothing acts on it: {_NO_DESCHEDULER}",))
    if source.metadata.name == SCHEDULER_NAME:
        return _unmet(check_scheduler_config(source), where, in_scheduler_config(source.data or {}))
    if source.metadata.name != NAME:
        return CheckResult()
    return _unmet(check_config(source, surroundings), where, in_config(source))


def check_known_profile(source: ClusterColocationProfile, surroundings: CheckContext) -> CheckResult:
    """A profile's own faults, and what it writes into pods that nobody acts on."""
    found = check_profile(source, surroundings)
    return _unmet(found, f"ClusterColocationProfile {source.metadata.name}", in_profile(source))


def check_pod_group(source: _PodGroup, surroundings: CheckContext) -> CheckResult:
    """Its definition and the scheduler say what is wrong with it, here what cannot be read."""
    where = f"PodGroup {source.metadata.namespace}/{source.metadata.name}"
    found = CheckResult((), tuple(each.text for each in misread.in_metadata(source.metadata, where)))
    return _unmet(found, where, in_pod_group(source.metadata, source.spec or {}))


def check_node_slo(source: NodeSLO, surroundings: CheckContext) -> CheckResult:
    """Each section by the readers that act on it."""
    refusals = []
    for reader in (
        lambda: slo_others(source),
        lambda: slo_threshold(source, SwitchFields),
        lambda: slo_threshold(source, SuppressFields),
        lambda: slo_threshold(source, EvictionFields),
        lambda: slo_host_applications(source),
        lambda: slo_sections(source),
    ):
        try:
            reader()
        except ConfigurationFault as fault:
            refusals.append(str(fault))
    found = CheckResult(tuple(dict.fromkeys(refusals))) if refusals else _rules_of(source)
    return _unmet(found, f"NodeSLO {source.metadata.name}", in_node_slo(source))


def _rules_of(source: NodeSLO) -> CheckResult:
    """Eviction rules that would be off, as in the ConfigMap."""
    where = f"NodeSLO {source.metadata.name}: spec.resourceUsedThresholdWithBE"
    told = flaws(slo_threshold(source, EvictionFields))
    off = slo_threshold(source, SwitchFields).enable is False
    return CheckResult(
        tuple(f"{where}.{flaw}" for flaw in told if flaw.refused),
        tuple(f"{where}.{flaw}" for flaw in told if not (flaw.refused or off)),
    )


def _unmet(found: CheckResult, where: str, asked: Iterable[Asked]) -> CheckResult:
    """With one sentence for each field that is asked for and not acted on; what is refused asks for nothing."""
    told = () if found.refusals else tuple(sentence(where, each) for each in asked)
    return CheckResult(found.refusals, (*found.warnings, *told))


class _Named(msgspec.Struct, frozen=True):
    """Of any object its name."""

    metadata: Metadata = Metadata()


class _JobSpec(msgspec.Struct, frozen=True):
    suspend: bool | None = None


class _Job(msgspec.Struct, frozen=True):
    """Of a Job what names a queue or a gang."""

    metadata: Metadata = Metadata()
    spec: _JobSpec = _JobSpec()


def check_job(source: _Job, surroundings: CheckContext) -> CheckResult:
    """What it names itself that nobody serves; nothing of a Job is refused. Its pods: `templates`."""
    where = _where("Job", source.metadata)
    local = surroundings.local_queues()
    held = held_for_ever(source.metadata, bool(source.spec.suspend), where, local)
    whole = (source.metadata.labels or {}).get(QUEUE_NAME) in local
    named = in_metadata(source.metadata, where, queues={*(surroundings.queues() or ()), *local}, whole=whole)
    return CheckResult((), (*([held] if held else ()), *(each.text for each in named)))


def _unserved(kind: UnservedKind) -> tuple[type, Check]:
    def check_unserved(source: _Named, surroundings: CheckContext) -> CheckResult:
        return CheckResult((), (kind_sentence(kind, _where(kind.kind, source.metadata)),))

    return _of(_Named, check_unserved)


def _where(kind: str, metadata: Metadata) -> str:
    name = metadata.name or metadata.generate_name
    return f"{kind} {metadata.namespace}/{name}" if metadata.namespace else f"{kind} {name}"


KINDS: Mapping[tuple[str, str], tuple[type, Check]] = {
    ("", "ConfigMap"): _of(ConfigMap, check_named_config),
    ("slo.koordinator.sh", "NodeSLO"): _of(NodeSLO, check_node_slo),
    ("config.koordinator.sh", "ClusterColocationProfile"): _of(ClusterColocationProfile, check_known_profile),
    ("scheduling.sigs.k8s.io", "PodGroup"): _of(_PodGroup, check_pod_group),
    ("batch", "Job"): _of(_Job, check_job),
    ("sublet.dev", "Queue"): _of(Queue, check_queue),
    ("sublet.dev", "TrainingJob"): _of(TrainingJob, check_training_job),
    ("scheduling.volcano.sh", "Queue"): _of(VolcanoQueue, check_queue),
    ("scheduling.volcano.sh", "PodGroup"): _of(VolcanoPodGroup, check_volcano_group),
    ("scheduling.sigs.k8s.io", "ElasticQuota"): _of(ElasticQuota, check_queue),
    ("quota.koordinator.sh", "ElasticQuotaProfile"): _of(ElasticQuotaProfile, check_quota_profile),
    ("kueue.x-k8s.io", "ClusterQueue"): _of(ClusterQueue, check_kueue_queue),
    ("kueue.x-k8s.io", "Cohort"): _of(Cohort, check_kueue_queue),
    ("kueue.x-k8s.io", "LocalQueue"): _of(LocalQueue, check_local_queue),
    ("kueue.x-k8s.io", "ResourceFlavor"): _of(ResourceFlavor, check_flavor),
    ("kueue.x-k8s.io", "WorkloadPriorityClass"): _of(WorkloadPriorityClass, check_workload_priority),
    ("kueue.x-k8s.io", "Topology"): _of(Topology, check_topology),
    **{(kind.group, kind.kind): _unserved(kind) for kind in UNSERVED_KINDS},
}
"""API group and kind → how an object is read, and its check."""

DELETIONS: Mapping[tuple[str, str], tuple[type, Check]] = {
    ("sublet.dev", "Queue"): _of(Queue, check_deleted_queue),
    ("scheduling.volcano.sh", "Queue"): _of(VolcanoQueue, check_deleted_queue),
    ("scheduling.sigs.k8s.io", "ElasticQuota"): _of(ElasticQuota, check_deleted_queue),
    ("kueue.x-k8s.io", "ClusterQueue"): _of(ClusterQueue, check_deleted_cluster_queue),
}
"""The same of an object that is to be deleted."""


def check(group: str, kind: str, raw: bytes, old: bytes | None, surroundings: CheckContext) -> CheckResult | None:
    """What is found; None for a kind that nobody checks.

    What was wrong before a change already is only warned of: whoever switches something off in a hurry must not have
    to mend everything else first.
    """
    if (group, kind) not in KINDS:
        return None
    found = _checked(group, kind, raw, surroundings)
    if not (found.refusals and old):
        return found
    known = set(_checked(group, kind, old, surroundings).refusals)
    refusals = tuple(each for each in found.refusals if each not in known)
    return CheckResult(refusals, (*(each for each in found.refusals if each in known), *found.warnings))


def check_deleted(group: str, kind: str, raw: bytes, surroundings: CheckContext) -> CheckResult | None:
    """What is found about the deletion of an object; None for a kind whose deletion nobody checks."""
    if (group, kind) not in DELETIONS:
        return None
    type_, checks = DELETIONS[group, kind]
    try:
        return checks(msgspec.json.decode(raw, type=type_, strict=False), surroundings)
    except msgspec.ValidationError:
        return CheckResult()  # one that cannot be read is best deleted


def _checked(group: str, kind: str, raw: bytes, surroundings: CheckContext) -> CheckResult:
    """An object that cannot even be read is refused."""
    type_, checks = KINDS[group, kind]
    try:
        return checks(msgspec.json.decode(raw, type=type_, strict=False), surroundings)
    except msgspec.ValidationError as error:
        return CheckResult((f"{kind}: {error}; correct the field",))
