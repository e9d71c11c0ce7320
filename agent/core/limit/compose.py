"""Composition: the limits of all strategies together, each control file by the strategy that owns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import Strategy, owner_of
from agent.core.observe.layout import Layout
from model.reason import Reason


class Composed(msgspec.Struct, frozen=True):
    """Limits of the files' owners, in order; `refused` are those of strategies that own no such file there."""

    limits: tuple[Limit, ...] = ()
    refused: tuple[Limit, ...] = ()


def composed(layout: Layout, wanted: Mapping[Strategy, Iterable[Limit]]) -> Composed:
    """One limit for each control file.

    The table's owner has its way whatever the order, and whether it wants anything now or not: a pod in a place that a
    strategy did not expect is data, and must not stop a tick.
    """
    limits: list[Limit] = []
    refused: list[Limit] = []
    for strategy, each in wanted.items():
        for limit in each:
            owner = owner_of(layout, limit.knob)
            if owner is strategy:
                limits.append(limit)
            else:
                refused.append(_refused(limit, strategy, owner))
    return Composed(tuple(limits), tuple(refused))


def _refused(limit: Limit, strategy: Strategy, owner: Strategy | None) -> Limit:
    detail = f"{strategy} asked for {limit.value}; the file is {owner or 'nobody'}'s there"
    return replace(limit, decision=replace(limit.decision, reason=Reason.KNOB_OF_OTHER_STRATEGY, detail=detail))
