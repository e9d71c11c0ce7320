"""What runs and ran: from the first pod of a workload on a node to the last, by kinds of work."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from scheduler_builders import pod

from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.core.estimates.durations import ENOUGH_RUNS
from scheduler.core.estimates.run_book import RunBook, kinds_of
from scheduler.core.snapshot.podclass import class_of

GANG = WorkloadId.gang("default/train")
GPU = "nvidia.com/gpu"


def running(name: str, started: float, **more: Any) -> Pod:
    status = {"started_seconds": started} | more
    found = pod(name, requests={GPU: 4}, node_name="n1")
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, **status))


def ran(book: RunBook, name: str, started: float, ended: float, **more: Any) -> Pod:
    found = running(name, started, **more)
    book.on_node(WorkloadId.pod(found.key), found, class_of(found), started)
    book.left(found.uid, ended)
    return found


def test_a_run_is_that_of_the_whole_workload() -> None:
    """From its first pod to its last, once."""
    book = RunBook()
    for turn in range(ENOUGH_RUNS):
        pods = [running(f"w{i}", 100.0 + i) for i in range(2)]
        for each in pods:
            book.on_node(GANG, each, class_of(each), 200.0)
        assert book.started(GANG) == 100.0
        book.left("uid-w0", 150.0)
        assert book.started(GANG) == 100.0
        book.left("uid-w1", 160.0 + turn)
        assert book.started(GANG) is None and len(book) == 0
    found = book.past(pods[0], class_of(pods[0]), 2)
    assert found is not None and found.seconds == tuple(60.0 + turn for turn in range(ENOUGH_RUNS))


def test_a_pod_whose_gang_joins_another_group_is_of_one_run() -> None:
    """Who writes groups changes that as often as they like; nothing is learned by it, and nothing stays."""
    book, other = RunBook(), WorkloadId.gang("default/train", "default/more")
    pods = [running(f"w{i}", 100.0) for i in range(2)]
    for each in pods:
        book.on_node(GANG, each, class_of(each), 200.0)
    book.on_node(other, pods[0], class_of(pods[0]), 300.0)
    assert (book.started(GANG), book.started(other), len(book)) == (100.0, 100.0, 2)
    book.on_node(other, pods[1], class_of(pods[1]), 300.0)
    assert (book.started(GANG), book.started(other), len(book)) == (None, 100.0, 1)
    assert len(book.durations) == 0
    for each in pods:
        book.left(each.uid, 400.0)
    assert len(book) == 0


def test_what_was_evicted_says_only_that_such_work_runs_longer() -> None:
    """By whomever: an agent's evictions, too, which its token may ask for as often as its node has pods."""
    book = RunBook()
    for _ in range(ENOUGH_RUNS):
        found = ran(book, "w", 0.0, 5.0, evicted=True)
    assert book.past(found, class_of(found), 1) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("train", "default/train"),
        ("train-0", "default/train"),
        ("train-7f4ca9-x2k5z", "default/train"),
        ("llm-v2-final", "default/llm-v2-final"),
        ("llm.v2.3", "default/llm"),
        ("train--7", "default/train-"),
        ("train-7-", "default/train-7-"),
        ("7", "default/7"),
        ("-7", "default/"),
    ],
)
def test_numbers_at_the_end_of_a_name_tell_runs_of_one_job_apart(name: str, kind: str) -> None:
    assert kinds_of(running(name, 0.0), class_of(running(name, 0.0)), 1)[0][0] == kind


def test_no_name_takes_long_to_read() -> None:
    """Whoever makes a pod chooses its name: many numbers before a last part without one, shorter and at its longest."""
    for parts in (14, 62):
        name = "x" + "-111" * parts + "-a"
        found = running(name, 0.0)
        begun = time.process_time()
        assert kinds_of(found, class_of(found), 1)[0][0] == f"default/{name}"
        assert time.process_time() - begun < 0.25


def test_kinds_from_the_narrowest_to_the_widest() -> None:
    """By devices to the next power of two."""
    found = pod("train-3", requests={GPU: 3}, queue="ml")
    told = kinds_of(found, class_of(found), 2)
    assert told == (("default/train", f"8 {GPU}"), ("queue ml", f"8 {GPU}"), ("queue ml",), ("all",))


def test_by_when_it_has_ended() -> None:
    """By those that ran longer; of what outlasted all of them nothing is known, nor of what does not run."""
    book = RunBook()
    for turn in range(ENOUGH_RUNS):
        ran(book, f"w-{turn}", 100.0, 110.0 + turn)
    one = running("w-9", 200.0)
    subject = WorkloadId.pod(one.key)
    assert book.known_end(subject, 200.0, 0.9) is None
    book.on_node(subject, one, class_of(one), 200.0)
    assert book.known_end(subject, 200.0, 1.0) == 200.0 + 10.0 + ENOUGH_RUNS - 1
    assert book.known_end(subject, 210.5, 0.0) == 211.0
    assert book.known_end(subject, 250.0, 0.9) is None
    few = running("other", 200.0)
    few = msgspec.structs.replace(few, name="x", uid="uid-x", namespace="elsewhere")
    empty = RunBook()
    empty.on_node(WorkloadId.pod("elsewhere/x"), few, class_of(few), 200.0)
    assert empty.known_end(WorkloadId.pod("elsewhere/x"), 210.0, 0.9) is None


def test_what_runs_is_a_part_of_what_is_known() -> None:
    """By its age at that moment, of each of its kinds; what was evicted by its last."""
    book = RunBook()
    for turn in range(ENOUGH_RUNS):
        ran(book, f"w-{turn}", 100.0, 110.0 + turn)
    ran(book, "w-cut", 100.0, 130.0, evicted=True)
    one, gang = running("w-8", 180.0), running("w-9", 150.0)
    book.on_node(WorkloadId.pod(one.key), one, class_of(one), 200.0)
    book.on_node(GANG, gang, class_of(gang), 200.0)
    found = book.at(200.0).past(one, class_of(one), 1)
    assert found is not None and found.outlasted == (20.0, 50.0)
    other = msgspec.structs.replace(one, name="w-cut", uid="uid-other")
    assert (known := book.at(200.0).past(other, class_of(other), 3)) is not None
    assert known.kind == ("queue default",) and known.outlasted == (20.0, 30.0, 50.0)
