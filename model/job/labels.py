"""Labels and annotations of the pods of jobs: read and written by the same names.

Source of Volcano's: volcano.sh/apis pkg/apis/batch/v1alpha1/labels.go, pkg/apis/scheduling/v1beta1/labels.go.
"""

from __future__ import annotations

JOB_UID = "sublet.dev/job-uid"
"""Label of every pod and object that is made for a job."""
JOB_NAME = "sublet.dev/job-name"
TASK = "sublet.dev/task"
TASK_INDEX = "sublet.dev/task-index"
JOB_RUN = "sublet.dev/job-run"
JOB_TYPE = "sublet.dev/job-type"
"""Label of pods of a TrainingJob: its spec.jobType."""
QUEUE = "sublet.dev/queue"
PREEMPTION_POLICY = "sublet.dev/preemption-policy"
MINIMUM_MEMBER = "sublet.dev/minimum-member"
"""Annotation of a pod, `true`: its job does not go on without it, so that it goes with all others or not at all."""
CHECKPOINT_SOCKET = "sublet.dev/checkpoint-socket"
"""Annotation `true` of a pod that is to have a socket of its own, between it and its node's agent."""
REQUIRED_TOPOLOGY = "sublet.dev/required-topology"
NOTICE_SECONDS = "sublet.dev/preemption-notice-seconds"
"""How long before others end it a pod wants to be told."""
STANDING_NOTICE = "sublet.dev/preemption-notice"
"""That it is told."""

POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
"""Label of a pod: its PodGroup of scheduling.sigs.k8s.io."""
MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
RANK = "gang.scheduling.koordinator.sh/network-topology-index"

VOLCANO_TASK = "volcano.sh/task-spec"
VOLCANO_INDEX = "volcano.sh/task-index"
VOLCANO_JOB = "volcano.sh/job-name"
VOLCANO_NAMESPACE = "volcano.sh/job-namespace"
VOLCANO_VERSION = "volcano.sh/job-version"
VOLCANO_QUEUE = "volcano.sh/queue-name"
VOLCANO_RETRIES = "volcano.sh/job-retry-count"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
WAITING_TIME = "volcano.sh/sla-waiting-time"
"""Annotation of a PodGroup of either kind: after so long in the queue its gang goes before others."""
