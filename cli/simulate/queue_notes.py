"""What a cluster's admission would say of the queues that are given, and fields of ours that none has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from admission.core.queue_rules import KnownQueue
from admission.known_queues import KnownQueues
from admission.queuecheck import tree_findings
from cli.simulate.cluster_objects import VOLCANO_QUEUE
from cli.simulate.manifests import Manifests
from kube.dialects.queues import sublet
from kube.informer import Change, ChangeKind

_KINDS = (sublet.KIND, VOLCANO_QUEUE, "ElasticQuota")


def queue_notes(found: Manifests) -> Iterator[str]:
    """Sentences: what is refused where queues are written one by one does not add up, so it is told; all is decided."""
    known = _known(found)
    for kind in _KINDS:
        for given in found.of(kind):
            if kind == sublet.KIND:
                yield from (f"{given.label}: {told}" for told in sublet.unread(given.object))
            result = tree_findings(given.object, known)
            yield from (f"a cluster refuses {told}" for told in result.refusals)
            yield from result.warnings


def _known(found: Manifests) -> Mapping[str, KnownQueue]:
    queues = KnownQueues()
    for kind in _KINDS:
        for given in found.of(kind):
            queues.apply(Change(ChangeKind.ADDED, given.object))
    return queues.view()
