"""Raw scores are brought to 0 to 100 as Kubernetes brings them, by the feasible rows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler.core.scores.normalize import by_largest, by_range, by_smallest

CASES = [
    ("the largest gets all", by_largest, [1, 2, 4], [1, 1, 1], [25, 50, 100]),
    ("rounded down", by_largest, [1, 3], [1, 1], [33, 100]),
    ("all zero stays zero", by_largest, [0, 0], [1, 1], [0, 0]),
    ("one that is out sets no scale", by_largest, [1, 2, 9], [1, 1, 0], [50, 100, 450]),
    ("none feasible", by_largest, [1, 2], [0, 0], [0, 0]),
    ("turned round", by_smallest, [0, 1, 2], [1, 1, 1], [100, 50, 0]),
    ("turned round, all zero", by_smallest, [0, 0], [1, 1], [100, 100]),
    ("a range", by_range, [-5, 0, 5], [1, 1, 1], [0, 50, 100]),
    ("a range above zero starts at its smallest", by_range, [4, 5, 6], [1, 1, 1], [0, 50, 100]),
    ("no range", by_range, [7, 7], [1, 1], [0, 0]),
    ("a range of nobody", by_range, [1, 2], [0, 0], [0, 0]),
]


@pytest.mark.parametrize(("normal", "raw", "feasible", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_normal(normal: Any, raw: list[int], feasible: list[int], wanted: list[int]) -> None:
    assert normal(np.array(raw), np.array(feasible, bool)).tolist() == wanted
