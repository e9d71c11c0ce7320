"""What statuses say of jobs and of what they have."""

from __future__ import annotations

import pytest
from queue_objects import ours, quota, volcanos

from kube.dialects.queues.reading import AnyQueue
from kube.dialects.queues.use import QueueUse, use_of

CASES: dict[str, tuple[AnyQueue, QueueUse]] = {
    "nothing was written yet": (ours(), QueueUse()),
    "ours": (
        ours(status={"runningJobs": 2, "pendingJobs": 3, "used": {"gpu": 8, "cpu": "1500m", "resources": {"a/b": 1}}}),
        QueueUse(2, 3, {"nvidia.com/gpu": 8, "cpu": 1500, "a/b": 1}),
    ),
    "Volcano's": (
        volcanos(status={"running": 2, "unknown": 1, "pending": 3, "inqueue": 1, "allocated": {"cpu": "2"}}),
        QueueUse(3, 4, {"cpu": 2000}),
    ),
    "Koordinator's, which counts no jobs": (quota(status={"used": {"cpu": "2"}}), QueueUse(1, 0, {"cpu": 2000})),
    "Koordinator's without any": (quota(status={"used": {"cpu": "0"}}), QueueUse(0, 0, {"cpu": 0})),
    "a status that cannot be read": (ours(status=[1]), QueueUse()),
    "counts that are none": (ours(status={"runningJobs": "2", "pendingJobs": True, "used": 1}), QueueUse()),
    "an amount that is none": (volcanos(status={"allocated": {"cpu": {}}, "running": 1}), QueueUse(1)),
}


@pytest.mark.parametrize("case", CASES)
def test_use(case: str) -> None:
    source, wanted = CASES[case]
    assert use_of(source) == wanted and wanted.jobs == wanted.running + wanted.waiting
