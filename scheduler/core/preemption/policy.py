"""Preemption policy; every limit against thrash is one of these settings."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class PreemptionPolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kubernetes' behaviour by default; on by default, since Koordinator's documentation and chart say so (S6)."""

    enable: Annotated[bool, Meta(description="Whether anybody is evicted to make room (enablePreemption).")] = True
    minimum_runtime_seconds: Annotated[
        float, Meta(ge=0, le=604_800, description="A pod that started more recently is no victim.")
    ] = 0.0
    minimum_priority_difference: Annotated[
        int, Meta(ge=1, le=2_000_000_000, description="A victim's priority is lower by at least this much.")
    ] = 1
    leave_ending: Annotated[
        bool,
        Meta(
            description="For work of a queue: a victim that by its deadline or past runs is expected to end within its "
            "grace period is left to end, and evicted once that is over. False: it is evicted at once, as in Kueue."
        ),
    ] = True
    most_victims: Annotated[int, Meta(ge=0, description="Pods that one plan may evict; 0: no limit.")] = 0
    victim_cooldown_seconds: Annotated[
        float, Meta(ge=0, le=604_800, description="A job that lost a pod to preemption loses no other for so long.")
    ] = 0.0
    longest_wait_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86_400,
            description="Room that has not come so long after its pods were evicted is given up: others may take it, "
            "and pods that end in time are evicted instead. How long one takes is the word of who made it.",
        ),
    ] = 300.0
    longest_notice_seconds: Annotated[
        float, Meta(ge=0, le=86_400, description="A victim that asks to be told gets no more time than this.")
    ] = 300.0
