"""PodDisruptionBudget: how many pods of a selection may be disrupted at this moment."""

from __future__ import annotations

import msgspec

from model.selector import Selector


class DisruptionBudget(msgspec.Struct, frozen=True, cache_hash=True):
    """`allowed` is status.disruptionsAllowed; `disrupted` are names of pods it has already counted as going.

    An empty selector matches no pod here, as in kube-scheduler's preemption.
    """

    namespace: str
    name: str
    selector: Selector
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()
