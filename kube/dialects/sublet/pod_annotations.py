"""Our own words on pods and PodGroups, where neither Kubernetes nor Koordinator has any."""

from __future__ import annotations

import re
from collections.abc import Mapping

ANNOTATION_NOTICE = "sublet.dev/preemption-notice-seconds"
"""How long before its eviction a pod wants to be told, to save a checkpoint."""
ANNOTATION_PREEMPTION_POLICY = "sublet.dev/preemption-policy"
"""`PreemptAlways` also evicts what has equal priority and came later; Kubernetes' own field has no such word."""
ANNOTATION_REQUIRED_TOPOLOGY = "sublet.dev/required-topology"
"""A node label key: all members go into one domain of it."""
ANNOTATION_PREFERRED_TOPOLOGY = "sublet.dev/preferred-topology"
"""A node label key: members go into one domain of it where that is possible."""
ANNOTATION_CHARGED_QUEUE = "sublet.dev/charged-queue"
"""Written with the Binding: the queue that the pod's PodGroup, maker or Workload named then, which may name another
later, or be gone. Empty where none of these named the one that it is charged to."""
ANNOTATION_MINIMUM_MEMBER = "sublet.dev/minimum-member"
"""`true`: the gang does not go on without this pod, however many others it has."""
_SECONDS = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")


def charged_queue(annotations: Mapping[str, str], node_name: str) -> str | None:
    """Of a pod that has a node; None where nothing was written down."""
    return annotations.get(ANNOTATION_CHARGED_QUEUE) if node_name else None


def notice_seconds(annotations: Mapping[str, str]) -> float:
    """0 without the annotation, or where it is no number of seconds: then the pod's grace has to do."""
    text = annotations.get(ANNOTATION_NOTICE, "")
    return float(text) if reads_seconds(text) else 0.0


def minimum_member(annotations: Mapping[str, str]) -> bool:
    """Whether its gang does not go on without it."""
    return annotations.get(ANNOTATION_MINIMUM_MEMBER) == "true"


def reads_seconds(text: str) -> bool:
    """Whether it is a number of seconds."""
    return bool(_SECONDS.fullmatch(text.strip()))
