"""Questions about queues and jobs: who waits in which stage, what is short, who is ahead and what they hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text
from model.pod.colocation import StandingNotice
from model.queue import QuotaShortage
from model.resources import BATCH_CPU
from model.workload import WorkloadId
from scheduler.queue_answers import QueueAnswers

CELL = ("", BATCH_CPU)


def answers(world: World) -> QueueAnswers:
    return QueueAnswers(world.cache, world.cycle, world.history, world.clock)


def queue(name: str, parent: str = "", most: int | None = None) -> objects.Queue:
    quota = {} if most is None else {"hard": {"resources": {BATCH_CPU: most}}}
    return objects.Queue(objects.Metadata(name=name, uid=name), {"parent": parent, "quota": quota})


def pod(name: str, of: str, *, owner: str = "", **more: Any) -> objects.Pod:
    """Batch work of a queue that asks for 500, of a Job where that is named."""
    labels = {"koordinator.sh/qosClass": "BE", "sublet.dev/queue": of}
    found = raw_pod(name, labels=labels, **more)
    if not owner:
        return found
    references = [objects.OwnerReference("batch/v1", "Job", owner, owner, controller=True)]
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, owner_references=references))


@pytest.fixture
def world() -> World:
    """Queue team below ml may have 1000 and has it; gang train waits for quota behind pod first."""
    found = World().see(raw_node(batch_cpu="4000"), queue("ml"), queue("team", "ml", 1000), raw_group("train", 2))
    found.see(*(pod(f"r{i}", "team", node_name="n1", phase="Running", owner="job") for i in range(2)))
    found.see(pod("first", "team", created=1.0))
    found.see(*(pod(f"t{i}", "team", group="train", created=2.0) for i in range(2)))
    found.turn(after=5.0)
    return found


def test_a_queue(world: World) -> None:
    """Its standing, and those that wait in it or below it, the next first."""
    for name in ("team", "ml"):
        found = answers(world).queue(name)
        assert found is not None and found.waiting == 2
        assert [(job.name, job.position, job.stage, job.reason) for job in found.jobs] == [
            ("pod/default/first", 1, "quota", "QuotaExhausted"),
            ("gang/default/train", 2, "quota", "QuotaExhausted"),
        ]
        assert found.standing.cells[CELL].used == 1000
    assert answers(world).queue("gone") is None


def test_a_job_that_waits(world: World) -> None:
    """Its path, what it asks for, what is short by how much, and who is ahead."""
    found = answers(world).job("default", "train")
    assert found is not None
    assert (found.path, found.members, found.scheduled, found.needed) == (("team", "ml"), 2, 0, 2)
    assert found.shortages == (QuotaShortage(CELL, "team", "maximum", 1000, 0),)
    assert found.job.asked[BATCH_CPU] == 1000 and not found.job.held
    assert ([job.name for job in found.ahead], found.ahead_count) == (["pod/default/first"], 1)
    assert found.ahead[0].asked[BATCH_CPU] == 500
    assert "is asked for" in found.message


def test_the_pods_of_a_controller(world: World) -> None:
    """All of them by its name; those that run hold what they have."""
    world.see(pod("late", "team", owner="job", created=9.0)).turn(after=1.0)
    found = answers(world).job("default", "job")
    assert found is not None
    assert (found.job.name, found.members, found.scheduled, found.job.position) == ("job/default/job", 3, 2, 3)
    assert (found.job.asked[BATCH_CPU], found.job.held[BATCH_CPU]) == (500, 1000)


def test_an_object_that_makes_a_gang(world: World) -> None:
    """By its name, as the gang that its pods are."""
    labels = {"sublet.dev/queue": "team"}
    world.see(objects.Job(objects.Metadata("sweep", "default", labels=labels), objects.JobSpec(3, 3)))
    world.see(*(pod(f"s{i}", "team", owner="sweep", created=3.0) for i in range(2))).turn()
    world.turn(after=5.0)
    found = answers(world).job("default", "sweep")
    assert found is not None
    assert (found.job.name, found.members, found.needed) == ("gang/default/job:sweep", 2, 3)
    assert "gang default/job:sweep: 2 of 3 members exist" in found.message


def test_a_pod(world: World) -> None:
    """One that runs waits in no stage; a member of a gang stands for the gang."""
    found = answers(world).job("default", "r0")
    assert found is not None and (found.job.name, found.scheduled, found.shortages) == ("pod/default/r0", 1, ())
    member = answers(world).job("default", "t0")
    assert member is not None and member.job.name == "gang/default/train"


def test_who_is_not_known(world: World) -> None:
    assert answers(world).job("default", "gone") is None and answers(world).job("other", "train") is None


def test_of_one_that_does_not_wait(world: World) -> None:
    """Nothing is short for it; one that nobody decided on is in no stage."""
    assert answers(world).shortages(WorkloadId.pod("default/r0")) == ()
    assert answers(world).stage(WorkloadId.gang("default/train")) == "quota"
    assert answers(world).stage(WorkloadId.pod("default/unknown")) == ""


def test_work_of_a_job_that_is_saved_and_lost() -> None:
    """Of all its pods, that of who saved longest ago; and until when it may stay once it was told."""
    told = StandingNotice(990.0, 1060.0, "PreemptionByScheduler", "pod/default/hp")
    notice = {ANNOTATION_STANDING_NOTICE: notice_text(told)}
    world = World().see(raw_node(), raw_group(minimum=2))
    world.see(*(raw_pod(f"t{n}", group="train", node_name="n1", annotations=notice) for n in range(2))).turn()
    world.cache.work.report("uid-t0", 900.0)
    world.cache.work.share(frozenset({"uid-t0", "uid-t1"}))
    world.cache.work.lose("default/train", 30.0)
    found = answers(world).job("default", "train")
    assert found is not None
    assert (found.lost_seconds, found.saved_seconds, found.told_until_seconds) == (30.0, 900.0, 1060.0)
