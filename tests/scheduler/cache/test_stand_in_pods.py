"""Stand-ins of jobs that wait whole: there while the job waits, as many as it asks for, and none else."""

from __future__ import annotations

from typing import Any

from cache_builders import empty_cache, feed
from scheduler_builders import SCHEDULER

from kube import objects
from kube.informer import ChangeKind
from model.resources import CPU, PODS
from model.suspended.workload import WorkloadAdmission
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.cache.suspended_cache import gang_key


def workload(count: int = 2, cpu: str = "1") -> objects.Workload:
    """Of Job `train`, in LocalQueue `a`."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"schedulerName": SCHEDULER, "containers": [container]}}
    owner = [objects.OwnerReference("batch/v1", "Job", "train", "uid-job", True)]
    metadata = objects.Metadata("train", "default", "uid-w", owner_references=owner, resource_version="1")
    sets: list[Any] = [{"name": "main", "count": count, "template": template}]
    return objects.Workload(metadata, {"queueName": "a", "podSets": sets}, None)


def standing(cache: ClusterCache) -> list[int]:
    """What each stand-in asks for of CPU."""
    return [dict(record.pod_class.request)[CPU] for record in cache.pods.of_gang(gang_key("default/train"))]


def test_they_follow_the_workload() -> None:
    """Others where it asks for something else, none once it is gone."""
    cache = empty_cache()
    for asked, found in ((workload(), [1000, 1000]), (workload(3), [1000] * 3), (workload(1, "2"), [2000])):
        feed(cache, asked)
        assert standing(cache) == found
        assert all(record.stand_in for record in cache.pods.of_gang(gang_key("default/train")))
    feed(cache, workload(1, "2"), kind=ChangeKind.DELETED)
    assert standing(cache) == []


def test_they_go_with_the_admission() -> None:
    """And come back where that could not be written; their class is that of a pod of the job."""
    cache = empty_cache()
    feed(cache, workload())
    found = cache.suspended.get("default/train")
    assert found is not None
    assert dict(cache.stand_ins.class_of(found, "main").request) == {CPU: 1000, PODS: 1}
    cache.stand_ins.admit("default/train", WorkloadAdmission("team"), 1.0)
    assert standing(cache) == []
    cache.suspended.unassume("default/train")
    cache.stand_ins.look("default/train", 2.0)
    assert standing(cache) == [1000, 1000]


def test_a_job_that_is_changed_all_the_time_is_looked_at_at_times() -> None:
    """Ten thousand pods cost a third of a second each time, and a change of the job a few bytes."""
    cache, asked = empty_cache(), [workload(10_000 - index % 2) for index in range(8)]
    made = []
    for each in asked:
        feed(cache, each)
        made.append(len(standing(cache)))
    assert made == [10_000, 9_999, 10_000, 0, 0, 0, 0, 0]
    assert cache.stand_ins.next_due() is not None
    cache.stand_ins.go_on(5.0)
    assert standing(cache) == [1000] * 9_999
    assert cache.stand_ins.next_due() is None
