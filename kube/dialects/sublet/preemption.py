"""Preemption policies of pods, in Kubernetes', Koordinator's, Volcano's and our words.

Source: Koordinator apis/extension/{preemption,elastic_quota}.go; https://volcano.sh/en/docs/ (preemptable pods).
"""

from __future__ import annotations

from collections.abc import Mapping

from kube.dialects.sublet.pod_annotations import ANNOTATION_PREEMPTION_POLICY
from model.priority import PreemptionPolicy

LABEL_POLICY = "scheduling.koordinator.sh/preemption-policy"
LABEL_DISABLE_PREEMPTIBLE = "scheduling.koordinator.sh/disable-preemptible"
LABEL_QUOTA_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"


def policy(written: str | None, labels: Mapping[str, str], annotations: Mapping[str, str]) -> PreemptionPolicy:
    """`written` is spec.preemptionPolicy. Never wins wherever it stands; an unknown word counts as the default."""
    told = (written, labels.get(LABEL_POLICY), annotations.get(ANNOTATION_PREEMPTION_POLICY))
    if PreemptionPolicy.NEVER in told:
        return PreemptionPolicy.NEVER
    return PreemptionPolicy.ALWAYS if told[2] == PreemptionPolicy.ALWAYS else PreemptionPolicy.LOWER


def policy_word(written: str | None) -> PreemptionPolicy:
    """What a PriorityClass or PodGroup says; unset or unknown is the default."""
    return PreemptionPolicy.NEVER if written == PreemptionPolicy.NEVER else PreemptionPolicy.LOWER


def preemptible(labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Whether nothing protects the pod."""
    return not (
        labels.get(LABEL_DISABLE_PREEMPTIBLE) == "true"
        or labels.get(LABEL_QUOTA_PREEMPTIBLE) == "false"
        or "false" in (labels.get(VOLCANO_PREEMPTABLE), annotations.get(VOLCANO_PREEMPTABLE))
    )
