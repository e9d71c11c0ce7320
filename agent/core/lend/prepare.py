"""Prepared amounts: what may be lent, normalised, less what other schedulers gave away.

Source: Koordinator pkg/slo-controller/noderesource/plugins/{batchresource,util}. Only batch is changed: a mid amount
is written as it was computed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from model.decision import Decision, TermSum
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector

PREPARED = "prepared"
"""The policy that marks a decision as what is written."""


def prepared(decisions: Iterable[Decision], ratio: float | None, third_party: ResourceVector) -> tuple[Decision, ...]:
    """The final integers; a `ratio` of None or up to 1 changes nothing. A normalised amount is rounded up."""
    found = []
    for decision in decisions:
        terms = _normalized(decision, ratio, up=True)
        given = third_party[decision.name] if decision.name in (BATCH_CPU, BATCH_MEMORY) else 0
        if given > 0:
            terms.add("third-party allocations", -min(given, terms.value), f"{given} given away by other schedulers")
        found.append(_written(decision, terms))
    return tuple(found)


def prepared_in_zone(decisions: Iterable[Decision], ratio: float | None) -> tuple[Decision, ...]:
    """The integers of a zone's rows. Koordinator's hold thousandths of a unit there: cut, so that it is never more."""
    return tuple(_written(decision, _normalized(decision, ratio, up=False)) for decision in decisions)


def origin(
    decisions: Iterable[Decision], ratio: float | None, third_party: ResourceVector | None
) -> ResourceVector | None:
    """Batch amounts before other schedulers' allocations are taken off; None where the Node does not speak of them."""
    if third_party is None:
        return None
    batch = (d for d in decisions if d.name in (BATCH_CPU, BATCH_MEMORY))
    return ResourceVector({d.name: d.value for d in prepared(batch, ratio, ResourceVector())})


def _normalized(decision: Decision, ratio: float | None, *, up: bool) -> TermSum:
    """The product is cut at a thousandth of the unit (Koordinator MultiplyMilliQuant), then rounded to a whole one.

    Rounding up is what Quantity.Value does.
    """
    terms = TermSum().add("reclaimable", decision.value, "may be lent now")
    if decision.name == BATCH_CPU and ratio is not None and ratio > 1.0:
        thousandths = int(decision.value * 1000 * ratio)
        whole = -(-thousandths // 1000) if up else thousandths // 1000
        terms.become("CPU normalization", whole, f"times {ratio:.2f}")
    return terms


def _written(decision: Decision, terms: TermSum) -> Decision:
    return msgspec.structs.replace(decision, value=terms.value, terms=terms.terms, policy=PREPARED)
