"""Advice to the writer of a pod that is let in: batch pods that do not say what they use.

Koordinator's guide asks for requests and limits of every batch pod, both alike. What is not requested is not counted
when a node is chosen, and what is not limited may take all that is lent, so the pod, or one beside it, is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from admission.core.podfields import LABEL_PRIORITY_CLASS
from admission.core.validate import PodClaims
from model.pod.spec import Container
from model.qos import PriorityBand, priority_band
from model.resources import BATCH_CPU, BATCH_MEMORY

_BOTH = "batch pods set requests and limits, both alike"
_UNCOUNTED = "what it uses is not counted when its node is chosen"


def advised(pod: PodClaims, containers: Iterable[Container], where: str) -> tuple[str, ...]:
    """One sentence for each kind of omission, of batch pods alone; `containers` are all, `where` names the pod."""
    band = priority_band(pod.labels.get(LABEL_PRIORITY_CLASS), pod.priority, pod.qos)
    return tuple(_told(containers, where)) if band is PriorityBand.BATCH else ()


def _told(containers: Iterable[Container], where: str) -> Iterator[str]:
    pairs = [(each, name) for each in containers for name in (BATCH_CPU, BATCH_MEMORY)]
    kinds = (
        (
            [pair for pair in pairs if not _request(*pair)],
            "requests no",
            _UNCOUNTED,
        ),
        ([pair for pair in pairs if not _limit(*pair)], "limits no", "it may take all that is lent"),
        (
            [pair for pair in pairs if 0 < _request(*pair) != _limit(*pair) > 0],
            "requests and limits unlike",
            "it may take more than it was counted for",
        ),
    )
    for found, what, follows in kinds:
        if found:
            (container, name), more = found[0], len(found) - 1
            others = f" (and {more} more)" if more else ""
            yield f"{where}: container {container.name} {what} {name}{others}: {follows}; {_BOTH}"


def _request(container: Container, name: str) -> int:
    return container.requests[name]


def _limit(container: Container, name: str) -> int:
    return container.limits[name]
