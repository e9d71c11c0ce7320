"""A pod as the cache keeps it."""

from __future__ import annotations

from model.pod.pod import Pod
from model.pod.spec import PodSpec
from scheduler.cache.pod_record import CacheChanges, PodRecord
from scheduler.core.snapshot.podclass import class_of, pod_traits_of
from scheduler.ports import NamedObject


def test_its_name() -> None:
    """With the scheduler that it asks for, by which Events about it are told."""
    pod = Pod("ns", "p", "u", PodSpec(scheduler_name="volcano"))
    assert PodRecord(pod, class_of(pod), pod_traits_of(pod)).named == NamedObject("ns", "p", "u", "volcano")


def test_changes_begin_empty() -> None:
    """Of their own each: nothing of a turn is left to the next."""
    first, second = CacheChanges(), CacheChanges()
    first.subjects.add(Pod("ns", "p", "u").own_workload)
    assert not second.subjects and not second.news.happened
