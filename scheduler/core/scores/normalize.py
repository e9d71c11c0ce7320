"""Raw scores brought to 0 to 100 over the nodes a pod may go to.

Source: kubernetes pkg/scheduler/framework/plugins/helper/normalize_score.go, interpodaffinity/scoring.go.
"""

from __future__ import annotations

import numpy as np

from scheduler.core.snapshot.percent import FULL
from scheduler.core.snapshot.snapshot import Amounts, Mask


def by_largest(raw: Amounts, feasible: Mask) -> Amounts:
    """The largest feasible one gets 100, 0 stays 0; none is negative. All 0 where there is none above it."""
    largest = int(raw[feasible].max(initial=0))
    return raw * FULL // largest if largest else np.zeros_like(raw)


def by_smallest(raw: Amounts, feasible: Mask) -> Amounts:
    """Turned round: 0 gets 100, the largest feasible one 0."""
    return FULL - by_largest(raw, feasible)


def by_range(raw: Amounts, feasible: Mask) -> Amounts:
    """The smallest feasible one gets 0, the largest 100; all 0 where they are the same."""
    values = raw[feasible]
    if not len(values) or values.min() == values.max():
        return np.zeros_like(raw)
    least, width = int(values.min()), int(values.max()) - int(values.min())
    return (FULL * ((raw - least) / width)).astype(np.int64)
