"""Policy of queues: how shares are made, and what may be taken back."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from scheduler.core.queues.shares import GuaranteeRule, QuotaMode, ShareRules


class FairPreemption(StrEnum):
    """What the weighted dominant share of the preemptor's queue, with it, must not exceed: that of the victim's queue
    without the victim, or be less than: the same with it.
    """

    FINAL_SHARE = "LessThanOrEqualToFinalShare"
    INITIAL_SHARE = "LessThanInitialShare"


class QueuePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queues, quotas and shares; names that Volcano and Kueue have mean here what they mean there."""

    enable: Annotated[
        bool,
        Meta(description="Whether queues are acted on. Off, their objects are read by nobody and all work is of one."),
    ] = True
    fair_sharing: Annotated[
        bool,
        Meta(
            description="Queues are served by weighted dominant share, the smallest first (Kueue's fairSharing."
            "enable). Off, those that borrow nothing come first, then priority and time decide."
        ),
    ] = True
    quota_mode: Annotated[
        QuotaMode,
        Meta(
            description="`capacity`: a queue's own is what it says (nominal, deserved), else its share by weight. "
            "`proportion`: its share by weight alone, as Volcano's plugin of that name."
        ),
    ] = QuotaMode.CAPACITY
    guarantee: Annotated[
        GuaranteeRule,
        Meta(
            description="`added`: the part by weight comes on top of what is guaranteed (Koordinator). `floor`: what "
            "is guaranteed is the least that the part by weight may be (YARN, Volcano)."
        ),
    ] = GuaranteeRule.ADDED
    fair_preemption_strategies: Annotated[
        tuple[FairPreemption, ...],
        Meta(
            description="By which a workload whose queue would have more than it is entitled to may take from one that "
            "has still more (Kueue's fairSharing.preemptionStrategies); none: it waits."
        ),
    ] = ()
    admit_by_quota_alone: Annotated[
        bool,
        Meta(
            description="Admit a job that waits whole as soon as its queue has quota for it, as Kueue does, whether or "
            "not nodes have room: its pods may wait for that, and its quota is taken meanwhile."
        ),
    ] = False
    reclaim_ancestor_levels: Annotated[
        Annotated[int, Meta(ge=0, le=64)] | None,
        Meta(
            description="Of how many queues above its own a reclaiming workload must keep within what they are "
            "entitled to (Volcano's ancestorReclaimLevel); null: all below the first that both have in common.",
        ),
    ] = None
    reclaim_prod: Annotated[
        bool,
        Meta(
            description="Online pods of priority koord-prod and above (9000 and more, outside the mid, batch and free "
            "bands) are taken back for another queue whatever their priority, as in Volcano and Kueue. Off, only for "
            "work of higher priority.",
        ),
    ] = False
    usage_half_life_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=31_536_000)] | None,
        Meta(
            description="Shares are of what queues used over time, where use of so long ago counts half: a queue that "
            "ran all night goes last in the morning. Null: of what they use now.",
        ),
    ] = None

    submission_half_life_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=31_536_000,
            description="Of ClusterQueues with admissionMode UsageBasedAdmissionFairSharing: use by a LocalQueue so "
            "long ago counts half (Kueue's usageHalfLifeTime).",
        ),
    ] = 604_800.0

    @property
    def rules(self) -> ShareRules:
        """How shares are made."""
        return ShareRules(self.quota_mode, self.guarantee)
