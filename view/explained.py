"""Answers in rows: decisions that are worth telling, and scores side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from model import explain
from model.decision import Decision
from model.placement import Scored
from model.resources import MID_CPU, MID_MEMORY
from view.table import Table

_ZONE = "/zone/"


def telling(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Without what says nothing of its own: single zones, predictions, empty mid, and published as computed."""
    decisions = tuple(decisions)
    lent = {d.name: d.value for d in decisions if d.policy != explain.OFFERED and _ZONE not in d.subject}
    single = len({d.subject for d in decisions if _ZONE in d.subject}) == 1
    return tuple(
        d
        for d in decisions
        if d.name.startswith("kubernetes.io/")
        and not (_ZONE in d.subject and single)
        and not (d.name in (MID_CPU, MID_MEMORY) and d.value == 0)
        and not (d.policy == explain.OFFERED and d.value == lent.get(d.name))
    )


def score_table(scored: Scored) -> Table:
    """A row a score and their sum: weight × points on the chosen node, and on the next best where there is one."""
    found = scored.terms
    names = [*(term.name for term in found), "= total"]
    columns = [_points([(term.weight, term.chosen) for term in found])]
    nodes = [scored.node]
    if scored.runner_up:
        columns.append(_points([(term.weight, term.runner_up) for term in found]))
        nodes.append(scored.runner_up)
    return Table("", ("scores", *nodes), tuple(zip(names, *columns, strict=True)))


def _points(points: Sequence[tuple[int, int]]) -> list[str]:
    """Each weight with its points, and the sum."""
    total = sum(weight * number for weight, number in points)
    return [*(f"{weight} × {number}" for weight, number in points), str(total)]
