"""Whole percentages of large amounts, exact and fast."""

from __future__ import annotations

import numpy as np

from scheduler.core.snapshot.snapshot import Amounts

FULL = 100
_EXACT = (1 << 53) // FULL
"""Below this a double holds the hundredfold, and no quotient is so near the next whole number that it rounds to it."""


def percent(part: Amounts, whole: Amounts) -> Amounts:
    """part · 100 // whole for 0 ≤ part ≤ whole < 2^56 and 1 ≤ whole; arrays of one shape."""
    if not whole.size or int(whole.max()) >= _EXACT:
        return part * FULL // whole
    hundredfold = part * float(FULL)
    hundredfold /= whole
    return hundredfold.astype(np.int64)
