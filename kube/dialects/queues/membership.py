"""Which queue a pod is in: by its own words, those of its PodGroup, those of its namespace's quota, in this order.

Of a pod's words Volcano's come first, then Koordinator's, Kueue's and ours. Kueue's name a LocalQueue: a queue of that
name stands for it, and where there is none the word means nothing here.
Source: volcano.sh/apis pkg/apis/scheduling/v1beta1/labels.go, pkg/apis/batch/v1alpha1/labels.go; Koordinator
apis/extension/elastic_quota.go, pkg/scheduler/plugins/elasticquota/plugin_helper.go;
https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kube.dialects.queues.elastic_quota import LABEL_NAME, queue_name
from kube.objects import Metadata
from model.queue import DEFAULT_QUEUE

ANNOTATION_VOLCANO = "scheduling.volcano.sh/queue-name"
VOLCANO_JOB = "volcano.sh/queue-name"
"""As a label or an annotation."""
KUEUE = "kueue.x-k8s.io/queue-name"
LABEL_OURS = "sublet.dev/queue"
LOCAL_PREFIX = "localqueue/"
"""Before namespace and name: the queue of work that names a LocalQueue which is not there."""
_LONGEST = 253
_SHOWN = 63


class NamedQueues(msgspec.Struct, frozen=True):
    """The queue that a pod names, and the LocalQueue, where that counts before; empty where it names none."""

    queue: str = ""
    local: str = ""


def named_queues(metadata: Metadata) -> NamedQueues:
    """What a pod says itself."""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    told = (
        annotations.get(ANNOTATION_VOLCANO)
        or labels.get(VOLCANO_JOB)
        or annotations.get(VOLCANO_JOB)
        or queue_name(labels.get(LABEL_NAME, ""))
    )
    if told:
        return NamedQueues(_name(told))
    return NamedQueues(_name(labels.get(LABEL_OURS)), _name(labels.get(KUEUE) or annotations.get(KUEUE)))


def resolved(named: str, group: str, namespace: str, by_namespace: Mapping[str, str]) -> str:
    """The queue of a pod: `named` by itself, `group` is that of its PodGroup, `by_namespace` those of quotas.

    A PodGroup that names `default` says nothing, since Volcano's definition writes that where nobody does.
    """
    if named or group not in ("", DEFAULT_QUEUE):
        return named or group
    return by_namespace.get(namespace, DEFAULT_QUEUE)


def unknown_queue(where: str, place: str, queue: str) -> str:
    """What the writer of the object `where` reads whose `place` names a queue that nobody wrote."""
    return f"{where}: {place} is {queue[:_SHOWN]}, and there is no queue of that name: pods wait until there is"


def names_unknown(metadata: Metadata, where: str, queues: Collection[str], prefix: str = "") -> str:
    """The sentence for a pod that names a queue which is none of `queues`; empty for any other.

    `prefix` is where in the object its metadata stand. Kueue's word holds nobody back.
    """
    named = named_queues(metadata)
    if not named.queue or named.queue in queues or named.local in queues:
        return ""
    labels, annotations = metadata.labels or {}, metadata.annotations or {}
    for place, texts, key in (
        ("annotations", annotations, ANNOTATION_VOLCANO),
        ("labels", labels, VOLCANO_JOB),
        ("annotations", annotations, VOLCANO_JOB),
        ("labels", labels, LABEL_NAME),
        ("labels", labels, LABEL_OURS),
    ):
        if texts.get(key):
            return unknown_queue(where, f"{prefix}metadata.{place}[{key}]", named.queue)
    return ""


def _name(text: str | None) -> str:
    """An annotation holds any text; a name has no more than this."""
    return (text or "").strip()[:_LONGEST]
