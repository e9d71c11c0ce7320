"""Labels and annotations that are acted upon and cannot be read, one line each: what holds in their stead.

Whoever reads them falls back as Koordinator does, which would be silent otherwise. Only texts that are judged alone are
here: a gang's minimum, for one, holds its pods back and says so itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube.dialects.documents.duration import go_duration_seconds
from kube.dialects.gangs import membership
from kube.dialects.koordinator import cpuburst, cpuqos, loadaware, memoryqos, oomscores
from kube.dialects.sublet import eviction, pod_annotations
from kube.dialects.unserved import ANNOTATIONS, LABELS, Unserved, Word, said
from kube.objects import Metadata
from model.job.labels import CHECKPOINT_SOCKET
from model.workload import GangMode

_SHOWN_VALUE = 40
_MODES = tuple(mode.value for mode in GangMode)


class _Word(Word, frozen=True):
    """`reads` is whether a text that is not empty says anything; `instead` ends the sentence."""

    reads: Callable[[str], bool]
    instead: str


_WORDS = (
    _Word(
        ANNOTATIONS,
        eviction.ANNOTATION_POLICY,
        eviction.reads_features,
        'no rule may evict the pod; write a list such as ["BEMemoryEvict"]',
    ),
    _Word(ANNOTATIONS, eviction.ANNOTATION_PRIORITY, eviction.reads_number, "it counts as 0; write a whole number"),
    _Word(LABELS, eviction.LABEL_PRIORITY, eviction.reads_number, "it counts as unset; write a whole number"),
    _Word(
        LABELS,
        eviction.LABEL_ENABLED,
        lambda text: text in ("true", "false"),
        "rules by priority pass the pod over; write true or false",
    ),
    _Word(
        ANNOTATIONS,
        pod_annotations.ANNOTATION_NOTICE,
        pod_annotations.reads_seconds,
        "the pod is told as long ahead as its grace period; write seconds such as 30",
    ),
    _Word(
        ANNOTATIONS,
        CHECKPOINT_SOCKET,
        lambda text: text in ("true", "false"),
        "the pod has no socket; write true or false",
    ),
    _Word(
        ANNOTATIONS,
        cpuburst.ANNOTATION,
        cpuburst.reads_terms,
        'the node\'s strategy holds; write an object such as {"policy": "cpuBurstOnly"}',
    ),
    *(
        _Word(
            ANNOTATIONS,
            key,
            lambda text: go_duration_seconds(text) is not None,
            "the gang never goes before others for it; write a duration such as 30m",
        )
        for key in membership.WAITING_TIMES
    ),
    _Word(
        ANNOTATIONS, membership.ANNOTATION_MODE, lambda text: text in _MODES, f"the gang is Strict; write {_MODES[1]}"
    ),
    _Word(
        ANNOTATIONS,
        membership.ANNOTATION_WAIT,
        lambda text: bool(go_duration_seconds(text)),
        "the usual time holds; write a time such as 10m",
    ),
    _Word(
        ANNOTATIONS, membership.ANNOTATION_MATCH, membership.reads_match, "the usual policy holds; write once-satisfied"
    ),
    _Word(
        ANNOTATIONS,
        membership.ANNOTATION_MATCH_ALIAS,
        membership.reads_match,
        "the usual policy holds; write once-satisfied",
    ),
    _Word(
        ANNOTATIONS,
        membership.ANNOTATION_GROUPS,
        membership.reads_groups,
        'the gang is placed alone; write a list such as ["default/a", "default/b"]',
    ),
    _Word(
        ANNOTATIONS,
        loadaware.ANNOTATION_FACTORS,
        loadaware.reads_factors,
        'the usual factors hold; write percent from 1 to 1000 such as {"cpu": 85}',
    ),
    _Word(
        ANNOTATIONS,
        loadaware.ANNOTATION_AFTER_SCHEDULED,
        loadaware.reads_seconds,
        "the usual time holds; write whole seconds",
    ),
    _Word(
        ANNOTATIONS,
        loadaware.ANNOTATION_AFTER_INITIALIZED,
        loadaware.reads_seconds,
        "the usual time holds; write whole seconds",
    ),
    _Word(
        ANNOTATIONS,
        cpuqos.ANNOTATION,
        cpuqos.reads_pod_identity,
        'what its class says holds; write an object such as {"groupIdentity": 2}',
    ),
    _Word(
        ANNOTATIONS,
        memoryqos.ANNOTATION,
        memoryqos.reads_pod_memory,
        'what its class says holds; write an object such as {"policy": "auto"}',
    ),
    _Word(
        ANNOTATIONS,
        oomscores.ANNOTATION,
        oomscores.reads_score,
        "the kubelet's score stays; write a whole number from -1000 to 1000",
    ),
    _Word(
        ANNOTATIONS,
        oomscores.ANNOTATION_SPEC,
        oomscores.reads_scores,
        'the kubelet\'s scores stay; write an object such as {"app": 200}',
    ),
)
_KEYS = frozenset(word.key for word in _WORDS)


def in_metadata(metadata: Metadata, where: str, prefix: str = "") -> tuple[Unserved, ...]:
    """What cannot be read of a pod or PodGroup; `prefix` is where in the object its metadata stand."""
    return tuple(_misread(metadata, where, prefix))


def _misread(metadata: Metadata, where: str, prefix: str) -> Iterator[Unserved]:
    for word, value in said(_WORDS, _KEYS, metadata):
        if not word.reads(value):
            place = f"{prefix}{word.place}[{word.key}]"
            text = f"{where}: {place} is {value[:_SHOWN_VALUE]!r}, which cannot be read: {word.instead}"
            yield Unserved(place, text)
