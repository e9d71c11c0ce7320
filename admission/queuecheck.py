"""Checks of queues of all kinds, and of Volcano's PodGroups."""

from __future__ import annotations

from collections.abc import Mapping

from admission.check_result import CheckContext, CheckResult
from admission.core.queue_rules import KnownQueue, QueueWords, refusals, undeletable, warnings
from kube.dialects.gangs import volcano as volcano_groups
from kube.dialects.queues import elastic_quota, quota_profile, volcano
from kube.dialects.queues.dialect import QueueDialect
from kube.dialects.queues.membership import unknown_queue
from kube.dialects.queues.reading import AnyQueue, QueueObject, read
from kube.objects import ElasticQuota, ElasticQuotaProfile, VolcanoPodGroup, VolcanoQueue
from model.fault import ConfigurationFault
from model.queue import DEFAULT_QUEUE

_FORCED = "quota.scheduling.koordinator.sh/allow-force-update"
WORDS: Mapping[QueueDialect, QueueWords] = {
    QueueDialect.SUBLET: QueueWords("spec.parent", "spec.quota.guaranteed", "spec.quota.soft", "spec.quota.hard"),
    QueueDialect.VOLCANO: QueueWords(
        "spec.parent",
        "spec.guarantee.resource",
        "spec.deserved",
        "spec.capability",
        guarded=("guaranteed", "nominal"),
    ),
    QueueDialect.ELASTIC_QUOTA: QueueWords(
        f"label {elastic_quota.LABEL_PARENT}",
        f"annotation {elastic_quota.ANNOTATION_GUARANTEED}",
        "spec.min",
        "spec.max",
        guarded=("nominal",),
        bounded=False,
    ),
}
"""What each API's own webhook guards: Koordinator's the sum of min alone, unless a label forces the change."""


def check_queue(source: AnyQueue, surroundings: CheckContext) -> CheckResult:
    """What makes the queue unacceptable; and what will surprise its writer."""
    found = read(source)
    if found.problem:
        return CheckResult((found.problem,))
    known = surroundings.queues()
    told = _own_words(source, found)
    if known is None:
        return CheckResult((), told)
    result = tree_findings(source, known)
    return CheckResult(result.refusals, (*told, *result.warnings))


def tree_findings(source: AnyQueue, known: Mapping[str, KnownQueue]) -> CheckResult:
    """What is wrong with the queue among those that are known, by name."""
    found = read(source)
    if found.queue is None:
        return CheckResult()
    words, where = _words(found), found.where
    other = known.get(found.name)
    if other is not None and other.where != where:
        return CheckResult((), (f"{where}: has the name of {other.where}; only one of them counts; rename one",))
    refused = refusals(where, found.queue, known, words)
    return CheckResult(refused, warnings(where, found.queue, known, words))


def check_deleted_queue(source: AnyQueue, surroundings: CheckContext) -> CheckResult:
    """A queue that others are part of, or that jobs are in, stays."""
    found = read(source)
    told = undeletable(found.where, found.name, surroundings.queues() or {})
    return CheckResult((told,)) if told else CheckResult()


def check_quota_profile(source: ElasticQuotaProfile, surroundings: CheckContext) -> CheckResult:
    """Of what no ElasticQuota could be made."""
    try:
        quota_profile.quota_profile(source)
    except ConfigurationFault as fault:
        return CheckResult((str(fault),))
    told = quota_profile.misread(source)
    return CheckResult((), (told,) if told else ())


def check_volcano_group(source: VolcanoPodGroup, surroundings: CheckContext) -> CheckResult:
    """Nothing of a gang is refused: its writer is told."""
    where, gang = volcano_groups.where_of(source), volcano_groups.volcano_gang(source)
    if gang.spec.problem:
        return CheckResult((), (gang.spec.problem,))
    told = [f"{where}: nothing acts on {each}" for each in volcano_groups.unmet(source)]
    if gang.spec.priority_class and gang.spec.priority_class not in surroundings.classes():
        name = gang.spec.priority_class
        told.append(f"{where}: spec.priorityClassName: there is no PriorityClass {name}; its pods' priority counts")
    known = surroundings.queues()
    if known is not None and gang.queue not in ("", DEFAULT_QUEUE) and gang.queue not in known:
        told.append(unknown_queue(where, "spec.queue", gang.queue))
    return CheckResult((), tuple(told))


def _words(found: QueueObject) -> QueueWords:
    words = WORDS[found.dialect]
    forced = (found.metadata.labels or {}).get(_FORCED) == "true"
    root = (found.metadata.labels or {}).get(elastic_quota.LABEL_IS_ROOT) == "true"
    if found.dialect is QueueDialect.ELASTIC_QUOTA and (forced or root):
        return QueueWords(words.parent, words.guaranteed, words.nominal, words.maximum, (), bounded=False)
    return words


def _own_words(source: AnyQueue, found: QueueObject) -> tuple[str, ...]:
    """What nobody acts on, or reads."""
    if isinstance(source, VolcanoQueue):
        return tuple(f"{found.where}: nothing acts on {each}" for each in volcano.unmet(source))
    if isinstance(source, ElasticQuota):
        text = (source.metadata.annotations or {}).get(elastic_quota.ANNOTATION_NAMESPACES, "")
        if not elastic_quota.reads_namespaces(text):
            place = f"metadata.annotations[{elastic_quota.ANNOTATION_NAMESPACES}]"
            return (f'{found.where}: {place} cannot be read: it names no namespace; write a list such as ["a", "b"]',)
    return ()
