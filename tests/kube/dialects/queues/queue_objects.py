"""Queue objects of all kinds, valid unless a test says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kube.objects import ElasticQuota, Metadata, Queue, VolcanoQueue

QUOTA = "quota.scheduling.koordinator.sh/"


def ours(name: str = "research", status: Any = None, **spec: Any) -> Queue:
    return Queue(Metadata(name, uid=f"uid-{name}"), spec, status)


def volcanos(name: str = "research", status: Any = None, **spec: Any) -> VolcanoQueue:
    return VolcanoQueue(Metadata(name, uid=f"volcano-{name}"), spec, status)


def quota(
    name: str = "research",
    namespace: str = "default",
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    created: int = 2020,
    status: Any = None,
    **spec: Any,
) -> ElasticQuota:
    """Labels and annotations without Koordinator's prefix."""
    metadata = Metadata(
        name,
        namespace,
        uid=f"{namespace}-{name}",
        labels={QUOTA + key: value for key, value in (labels or {}).items()},
        annotations={QUOTA + key: value for key, value in (annotations or {}).items()},
        creation_timestamp=datetime(created, 1, 1, tzinfo=UTC),
    )
    return ElasticQuota(metadata, spec, status)
