"""The PodGroup of a job of each kind."""

from __future__ import annotations

from job_cases import job, task

from jobs.core.group_body import pod_group
from kube.dialects.gangs import membership
from model.job import labels
from model.job.actions import MadeKind
from model.job.job import GroupTerms, JobDialect, Member

MEMBERS = (Member("worker", 0), Member("worker", 1))


def test_of_a_training_job() -> None:
    terms = GroupTerms(minimum=2, wait_seconds=90.0, required_topology="rack")
    made = pod_group(job(group=terms), MEMBERS, "")
    assert made.kind is MadeKind.POD_GROUP and made.name == "train-12345678" and made.body["spec"] == {"minMember": 2}
    assert made.body["metadata"]["annotations"] == {
        "gang.scheduling.koordinator.sh/match-policy": "waiting-and-running",
        "volcano.sh/sla-waiting-time": "90s",
        "sublet.dev/required-topology": "rack",
    }
    assert made.body["metadata"]["ownerReferences"][0]["kind"] == "TrainingJob"


def test_of_a_volcano_job() -> None:
    of = job(
        task("master", 1), task("worker", 3), dialect=JobDialect.VOLCANO,
        group=GroupTerms(queue="training-queue", minimum=4), inherited={"volcano.sh/preemptable": "false"},
    )  # fmt: skip
    made = pod_group(of, [Member("master", 0), *(Member("worker", index) for index in range(3))], "high")
    assert made.kind is MadeKind.VOLCANO_POD_GROUP and made.name == "train-12345678-9abc"
    assert made.body["spec"] == {
        "minMember": 4,
        "minTaskMember": {"master": 1, "worker": 3},
        "queue": "training-queue",
        "priorityClassName": "high",
    }
    assert made.changes["metadata"]["annotations"] == {"volcano.sh/preemptable": "false"}


def test_never_more_than_there_are() -> None:
    """Tasks that wait for others have no pods yet: whoever needed them would wait for ever."""
    assert pod_group(job(group=GroupTerms(minimum=4)), MEMBERS[:1], "").body["spec"] == {"minMember": 1}


def test_words_that_the_scheduler_reads() -> None:
    assert labels.POD_GROUP == membership.LABEL_POD_GROUP and labels.MATCH_POLICY == membership.ANNOTATION_MATCH
    assert membership.WAITING_TIMES[0] == labels.WAITING_TIME and labels.VOLCANO_GROUP in membership.VOLCANO_NAMES
