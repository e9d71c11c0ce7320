"""Kinds, labels and annotations of other queueing systems that are accepted and not acted upon: one line each.

A definition of ours in deploy/crds lets manifests in where the system itself does not run; `STORED_ONLY` marks it.
Whoever makes a kind served removes its line here, and what a test then names: its rule in
deploy/admission/webhooks.yaml, its right in deploy/scheduler/rbac.yaml and the mark in its definition.
Source: https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/; volcano.sh/apis pkg/apis/{batch,scheduling};
scheduler-plugins apis/scheduling/v1alpha1/types.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec

from kube.dialects.coverage.rows import Area, Asked, CoverageRow, Support, Surface, sentence
from kube.dialects.queues.membership import KUEUE as QUEUE_WORD
from kube.objects import Metadata
from model.suspended.job import PRIORITY_CLASS

STORED_ONLY = "sublet.dev/stored-only"
"""Annotation of a definition of ours whose objects are kept and not acted upon."""
LABELS, ANNOTATIONS = "metadata.labels", "metadata.annotations"
_KUEUE, _VOLCANO = "where Kueue does not run itself", "where Volcano does not run itself"
_GANG = "write a PodGroup of scheduling.sigs.k8s.io/v1alpha1 and label pod-group.scheduling.sigs.k8s.io"


class UnservedKind(msgspec.Struct, frozen=True):
    """A kind nobody acts on; `consequence` is what follows from that, as the end of a sentence.

    `stored` says that a definition of ours keeps it, so that it may be looked for.
    """

    group: str
    version: str
    plural: str
    kind: str
    consequence: str
    stored: bool = True

    @property
    def resource(self) -> str:
        """As `path_of` takes it."""
        return f"{self.group}/{self.version}/{self.plural}"

    @property
    def definition(self) -> str:
        """The name of its CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"


class Word(msgspec.Struct, frozen=True):
    """A label or annotation; `place` is LABELS or ANNOTATIONS."""

    place: str
    key: str


W = TypeVar("W", bound=Word)


class _Word(Word, frozen=True):
    """One nobody acts on; `consequence` as above."""

    consequence: str


KINDS = (
    UnservedKind("kueue.x-k8s.io", "v1beta1", "admissionchecks", "AdmissionCheck", f"{_KUEUE}, it holds nothing back"),
    UnservedKind(
        "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", f"it makes no gang; {_GANG}", stored=False
    ),
)
"""Served by nobody of ours, until the line goes."""

_WORDS = (
    _Word(LABELS, QUEUE_WORD, f"{_KUEUE} and no LocalQueue has that name, no queue holds it back"),
    _Word(ANNOTATIONS, QUEUE_WORD, f"{_KUEUE} and no LocalQueue has that name, no queue holds it back"),
    _Word(LABELS, PRIORITY_CLASS, f"{_KUEUE}, it orders nothing; write spec.priorityClassName"),
    _Word(LABELS, "scheduling.x-k8s.io/pod-group", f"it makes no gang; {_GANG}"),
)
_KEYS = frozenset(word.key for word in _WORDS)
_SHOWN_VALUE = 63


class Unserved(msgspec.Struct, frozen=True):
    """One thing an object asks for: `place` is the field with its value, `text` the sentence.

    `queue` is the name of a queue that would serve it.
    """

    place: str
    text: str
    queue: str = ""


def kind_sentence(kind: UnservedKind, where: str) -> str:
    """What the writer of the object `where` reads."""
    return _sentence(where, f"{kind.kind} of {kind.group}", kind.consequence, Surface.KIND)


def in_metadata(
    metadata: Metadata, where: str, prefix: str = "", queues: Collection[str] = frozenset(), *, whole: bool = False
) -> tuple[Unserved, ...]:
    """What labels and annotations name that nobody serves; `prefix` is where in the object they stand.

    Kueue's word for a queue is served where one of `queues` has that name; its class of a job that waits `whole`, too.
    """
    found = [(word, text) for word, text in said(_WORDS, _KEYS, metadata) if not (whole and word.key == PRIORITY_CLASS)]
    return tuple(
        _named(word, value, where, prefix) for word, value in found if word.key != QUEUE_WORD or value not in queues
    )


def said(words: Iterable[W], keys: frozenset[str], metadata: Metadata) -> list[tuple[W, str]]:
    """Those of the words, whose keys are `keys`, that an object has, each with its text; an empty one says nothing."""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    if keys.isdisjoint(labels) and keys.isdisjoint(annotations):
        return []  # as nearly all are
    texts = {LABELS: labels, ANNOTATIONS: annotations}
    return [(word, text) for word in words if (text := texts[word.place].get(word.key))]


def held_for_ever(metadata: Metadata, suspended: bool, where: str, queues: Collection[str] = frozenset()) -> str:
    """Of a Job that waits for a queue to resume it; empty where it does not, or one of `queues` has that name."""
    named = (metadata.labels or {}).get(QUEUE_WORD) or (metadata.annotations or {}).get(QUEUE_WORD)
    if not (named and suspended) or named in queues:
        return ""
    told = "it waits until its LocalQueue admits it: where neither Kueue nor Sublet with Kueue's definitions does that"
    return f"{where}: spec.suspend is true, and {told}, nothing resumes it; write false"


def _named(word: _Word, value: str, where: str, prefix: str) -> Unserved:
    place = f"{prefix}{word.place}[{word.key}]={value[:_SHOWN_VALUE]}"
    surface = Surface.POD_LABEL if word.place == LABELS else Surface.POD_ANNOTATION
    queue = value if word.key == QUEUE_WORD else ""
    return Unserved(place, _sentence(where, place, word.consequence, surface), queue)


def _sentence(where: str, place: str, consequence: str, surface: Surface) -> str:
    return sentence(where, Asked(CoverageRow(surface, Area.QUOTA, place, Support.NOT_YET, consequence), (place,)))
