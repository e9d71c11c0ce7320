"""Taints by what they do."""

from __future__ import annotations

from model.node import TaintEffect


def test_which_effects_keep_pods_away() -> None:
    """PreferNoSchedule only scores, and what nobody knows does nothing."""
    assert [effect for effect in TaintEffect if effect.refuses] == [TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE]
