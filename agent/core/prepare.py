"""From what may be lent to what is written to the Node: normalised, less what other schedulers gave away.

Source: Koordinator pkg/slo-controller/noderesource/plugins/{batchresource,util}. Only batch is changed: a mid amount
is written as it was computed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from model.decision import Decision, TermSum
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector


def prepared(decisions: Iterable[Decision], ratio: float | None, third_party: ResourceVector) -> tuple[Decision, ...]:
    """The final integers; a `ratio` of None or up to 1 changes nothing."""
    return tuple(_prepared(decision, ratio, third_party) for decision in decisions)


def _prepared(decision: Decision, ratio: float | None, third_party: ResourceVector) -> Decision:
    terms = TermSum().add("reclaimable", decision.value, "may be lent now")
    if decision.name == BATCH_CPU and ratio is not None and ratio > 1.0:
        terms.become("CPU normalization", _normalized(decision.value, ratio), f"times {ratio:.2f}")
    given = third_party[decision.name] if decision.name in (BATCH_CPU, BATCH_MEMORY) else 0
    if given > 0:
        terms.add("third-party allocations", -min(given, terms.value), f"{given} given away by other schedulers")
    return msgspec.structs.replace(decision, value=terms.value, terms=terms.terms, policy="prepared")


def origin(decisions: Iterable[Decision], ratio: float | None, third_party: ResourceVector) -> ResourceVector | None:
    """Batch amounts before other schedulers' allocations are taken off; None where there are no allocations."""
    if not third_party:
        return None
    batch = (d for d in decisions if d.name in (BATCH_CPU, BATCH_MEMORY))
    return ResourceVector({d.name: d.value for d in prepared(batch, ratio, ResourceVector())})


def _normalized(amount: int, ratio: float) -> int:
    """The product is cut at a thousandth of the unit, then that quantity is rounded up to a whole one.

    So does Koordinator: MultiplyMilliQuant, then Quantity.Value.
    """
    return -(-int(amount * 1000 * ratio) // 1000)
