"""Equivalence classes: pods that every filter treats alike are filtered once."""

from __future__ import annotations

import msgspec

from model.pod import Pod, Toleration
from model.resources import PODS


class Tolerance(msgspec.Struct, frozen=True):
    """What decides whether a node is admissible at all, whatever its room."""

    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class PodClass(msgspec.Struct, frozen=True):
    """(request in base units, sorted by resource and without zeros; tolerance). Each pod also takes one of `pods`."""

    request: tuple[tuple[str, int], ...] = ((PODS, 1),)
    tolerance: Tolerance = Tolerance()


def class_of(pod: Pod) -> PodClass:
    """The class of a pod."""
    amounts = {name: amount for name, amount in pod.requests.amounts.items() if amount > 0}
    tolerance = Tolerance(tuple(sorted(pod.node_selector.items())), pod.tolerations)
    return PodClass(tuple(sorted((amounts | {PODS: 1}).items())), tolerance)
