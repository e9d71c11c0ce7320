"""What a checkpoint is worth is counted from the moment of its state."""

from __future__ import annotations

import pytest

from model.report import CheckpointSaved


@pytest.mark.parametrize(("begun", "since"), [(7.0, 7.0), (0.0, 9.0)], ids=["said", "not said, by an older agent"])
def test_work_is_lost_since(begun: float, since: float) -> None:
    assert CheckpointSaved("ns", "p", "u", 9.0, begun_seconds=begun).state_seconds == since
