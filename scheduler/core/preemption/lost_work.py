"""Lost work: what a pod did since the checkpoint from which its job can go on."""

from __future__ import annotations

from collections.abc import Mapping


def lost_seconds(started_seconds: float, saved_seconds: float | None, now: float) -> float:
    """Work since the newest checkpoint; all of it where none is known, none before the pod started (0)."""
    if started_seconds <= 0:
        return 0.0
    return max(0.0, now - max(started_seconds, saved_seconds or 0.0))


def saved_by_all(reported: Mapping[str, float], members: frozenset[str]) -> dict[str, float]:
    """By uid of each member of a job, since when its work is safe (Unix seconds); empty where nobody has saved yet.

    `reported` is when each pod that saves itself began its newest complete checkpoint. Of workers with equal states one
    saves for all: the others' work is as safe as that of who saved longest ago.
    """
    savers = {uid: reported[uid] for uid in members if uid in reported}
    if not savers:
        return {}
    oldest = min(savers.values())
    return {uid: savers.get(uid, oldest) for uid in members}
