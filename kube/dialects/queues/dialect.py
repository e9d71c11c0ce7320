"""The APIs whose objects are queues, by the names that settings have for them."""

from __future__ import annotations

from enum import StrEnum


class QueueDialect(StrEnum):
    """Whose objects are read: our Queue; Volcano's Queue and PodGroup; Koordinator's ElasticQuota; Kueue's
    ClusterQueue, Cohort, LocalQueue, ResourceFlavor, WorkloadPriorityClass and Topology.
    """

    SUBLET = "sublet"
    VOLCANO = "volcano"
    ELASTIC_QUOTA = "elastic_quota"
    KUEUE = "kueue"


ALL = (QueueDialect.SUBLET, QueueDialect.VOLCANO, QueueDialect.ELASTIC_QUOTA, QueueDialect.KUEUE)
"""In the order in which one counts that has the name of another."""
