"""All scores by name, in the order in which they are told, and why one node was chosen over the next best."""

from __future__ import annotations

import msgspec
import numpy as np

from model.placement import Scored, ScoreTerm
from scheduler.core.scores.node_scores import ROW_SCORES, ScoreAsk
from scheduler.core.scores.relative_scores import CLUSTER_SCORES, Compared
from scheduler.core.snapshot.snapshot import Amounts

SCORES = tuple(score.name for score in (*ROW_SCORES, *CLUSTER_SCORES))
"""Names of all scores: those of a node by itself, then those that compare nodes."""


class NodeChoice(msgspec.Struct, frozen=True, eq=False):
    """What a lone pod's node was chosen by: `ask` is about the chosen row and the next best, as they were then.

    `compared` is (points on both, weight) by name. Points are worked out once somebody asks, since thousands of pods
    are placed for each one that is asked about.
    """

    ask: ScoreAsk
    compared: tuple[tuple[str, int, tuple[int, ...]], ...]

    def scored(self) -> Scored:
        """A term for each score that the policy counts; those that tell no node from another are left out."""
        terms: list[ScoreTerm] = []
        both = np.arange(len(self.ask.snapshot.names))
        for score in ROW_SCORES:
            weight = score.weight(self.ask.policy)
            if weight:
                points = np.broadcast_to(np.asarray(score.points(self.ask, both)), both.shape)
                terms.append(ScoreTerm(score.name, weight, *points.tolist()))
        terms += [ScoreTerm(name, weight, *points) for name, weight, points in self.compared]
        node, *others = self.ask.snapshot.names
        return Scored(node, others[0] if others else "", tuple(terms))


def choice(ask: ScoreAsk, compared: Compared | None, rows: Amounts) -> NodeChoice:
    """The choice of the first of `rows` over the second, where there is one; not changed by what comes after."""
    parts = compared.parts if compared is not None else ()
    return NodeChoice(
        ask.of(rows), tuple((name, weight, tuple(points[rows].tolist())) for name, weight, points in parts)
    )
