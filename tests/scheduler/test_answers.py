"""Diagnostics: what is known of a pod, a gang, a queue and a node, and nothing of what is not there."""

from __future__ import annotations

import json

import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from model.queue import ROOT_QUEUE, JobAccount, JobProgress, QueuedJob
from model.report import NodeReport, Usage
from model.resources import BATCH_CPU
from scheduler.answers import SchedulerAnswers
from scheduler.link.node_reports import NodeReports


def asked(world: World, reports: NodeReports | None = None) -> SchedulerAnswers:
    reports = reports or NodeReports(world.cache, world.history, world.clock)
    return SchedulerAnswers(world.cache, world.cycle, world.history, reports, world.clock)


def test_the_progress_of_a_job() -> None:
    """Beside what the scheduler knows of its pods; alone where there are none; nothing of a job of nobody's here."""
    world, progress = busy(), JobProgress("TrainingJob", "Running")
    reports = NodeReports(world.cache, world.history, world.clock)

    def told(namespace: str, name: str) -> JobProgress | None:
        return progress if name in ("train", "early") else None

    answers = SchedulerAnswers(world.cache, world.cycle, world.history, reports, world.clock, told)
    train, early, first = (answers.job("default", name) for name in ("train", "early", "first"))
    assert train is not None and (train.progress, train.members) == (progress, 2)
    assert early == JobAccount(
        "default", "early", QueuedJob("TrainingJob/default/early", ROOT_QUEUE), progress=progress
    )
    assert first is not None and first.progress is None and answers.job("default", "nobody") is None


def busy() -> World:
    """n1 is full of `bound`; `first` and `second` wait, and a gang of three of which two exist."""
    world = World().see(
        raw_node(batch_cpu="500"),
        raw_pod("bound", node_name="n1", phase="Running"),
        raw_pod("second", created=2.0),
        raw_pod("first", created=1.0),
        raw_group("train", 3),
        raw_pod("t0", group="train", created=3.0),
        raw_pod("t1", group="train", created=4.0),
        raw_pod("strange", scheduler_name="nobody"),
    )
    world.turn(after=5.0)
    world.turn(after=5.0)
    return world


def test_a_pod_that_waits() -> None:
    """Its place in the queue, its message, and which node is nearest."""
    answers = asked(busy())
    first, second = answers.pod("default", "first"), answers.pod("default", "second")
    assert first is not None and second is not None
    assert (first.queue_position, second.queue_position) == (1, 2)
    assert "0/1 nodes are available" in first.message and first.node == ""
    assert first.decision is not None and first.decision.subject == "pod/default/first"
    assert "n1" in first.nearest


def test_a_pod_that_has_a_node() -> None:
    """Nothing about a queue."""
    found = asked(busy()).pod("default", "bound")
    assert found is not None
    assert (found.node, found.queue_position, found.message, found.nearest) == ("n1", 0, "", "")


def test_a_pod_of_another_scheduler() -> None:
    """It says for whom it waits, and which names are ours."""
    found = asked(busy()).pod("default", "strange")
    assert found is not None
    assert found.message.startswith("waits for scheduler nobody; this one takes pods whose schedulerName is one of ")


def test_who_is_not_known() -> None:
    """None, and not an empty answer."""
    answers = asked(busy())
    assert answers.pod("default", "none") is None and answers.pod("other", "first") is None
    assert answers.gang("default", "none") is None


def test_a_gang_that_lacks_members() -> None:
    """How many exist of how many, how many wait, and what its pods were told."""
    found = asked(busy()).gang("default", "train")
    assert found is not None
    assert (found.name, found.min_member, found.members, found.scheduled, found.waiting) == ("train", 3, 2, 0, 2)
    assert found.decision is not None and "2 of 3 members exist" in found.decision.detail
    assert [gang.name for gang in asked(busy()).gangs()] == ["train"]


def test_a_gang_that_waits_for_room() -> None:
    """Its place in the queue, and the node that comes nearest."""
    world = World().see(raw_node(batch_cpu="100"), raw_group("train", 2))
    world.see(*(raw_pod(f"t{i}", group="train") for i in range(2)))
    world.turn()
    found = asked(world).gang("default", "train")
    assert found is not None
    assert (found.waiting, found.queue_position) == (2, 1)
    assert "n1" in found.nearest and "0/1 nodes" in found.message


def test_a_gang_is_known_by_its_object_or_by_its_pods() -> None:
    """Either is enough."""
    world = World().see(raw_group("empty", 2), raw_pod("lost", group="nowhere"))
    world.turn()
    answers = asked(world)
    empty, lost = answers.gang("default", "empty"), answers.gang("default", "nowhere")
    assert empty is not None and (empty.min_member, empty.members) == (2, 0)
    assert lost is not None and lost.problem == "its PodGroup does not exist"


def test_a_gang_that_runs_is_asked_nothing_more() -> None:
    """No queue, no nearest node."""
    world = World().see(raw_node(batch_cpu="9000"), raw_group("train", 2))
    world.see(*(raw_pod(f"t{i}", group="train", node_name="n1", phase="Running") for i in range(2)))
    world.turn()
    found = asked(world).gang("default", "train")
    assert found is not None
    assert (found.scheduled, found.waiting, found.queue_position, found.nearest) == (2, 0, 0, "")


def test_queues() -> None:
    """The share of the scarcest resource, and how many wait and run."""
    batch = {"koordinator.sh/qosClass": "BE"}
    world = World().see(raw_node(batch_cpu="500"), raw_pod("bound", node_name="n1", phase="Running", labels=batch))
    world.see(raw_pod("first", labels=batch), raw_pod("second", labels=batch))
    world.turn()
    (queue,) = asked(world).queues()
    assert (queue.pending_jobs, queue.running_jobs, queue.dominant_resource) == (2, 1, BATCH_CPU)
    assert queue.dominant_share == pytest.approx(1.0)


def test_work_that_no_queue_governs() -> None:
    """It counts as a job of the queue that is there in any case, and for nobody's share; a pod of it is in none."""
    first = asked(busy()).pod("default", "first")
    assert first is not None and (first.queue, first.stage) == ("", "placement")
    (queue,) = asked(busy()).queues()
    assert (queue.queue.name, queue.pending_jobs, queue.running_jobs) == ("default", 2, 1)
    assert queue.dominant_share == 0.0


def test_nodes() -> None:
    """Amounts, the link, and how old the newest report is; none where its agent said nothing."""
    world = busy()
    reports = NodeReports(world.cache, world.history, world.clock)
    (silent,) = asked(world, reports).nodes()
    assert (silent.node, silent.requested[BATCH_CPU], silent.link_connected) == ("n1", 500, False)
    assert silent.report_age_seconds is None
    reports.connected("n1")
    reports.report("n1", NodeReport(world.clock.now, *[Usage(0, 0)] * 4))
    world.clock.now += 7
    (heard,) = asked(world, reports).nodes()
    assert (heard.link_connected, heard.report_age_seconds) == (True, 7.0)
    assert heard.allocatable[BATCH_CPU] == 500


def test_settings() -> None:
    """Those in force, and what switched preemption."""
    told = json.loads(asked(busy()).settings())
    assert told["concurrent_binds"] == 64
    assert "preemption_enabled_by" in told and told["scheduler_config"] is None
