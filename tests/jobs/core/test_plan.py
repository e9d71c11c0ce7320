"""The life of a job, as its plan has it: made, restarted, suspended, ended."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from job_cases import FACTS, NOW, Cluster, job, planned, pod, running, task

from jobs.core.peers import Peers, peers
from jobs.core.policy import JobFacts
from model.job.actions import CreatePod, DeleteJob, DeletePod, EnsureObject, MadeKind, TellEvent
from model.job.job import Framework, GroupTerms, LifecycleRule, Member, PodEvent, RuleAction, TaskDependency
from model.job.status import JobPhase, JobStatus, PodPhase, TaskCounts


def created(plan: object) -> list[str]:
    return [action.body["metadata"]["name"] for action in plan.actions if isinstance(action, CreatePod)]  # type: ignore[attr-defined]


def deleted(plan: object) -> list[str]:
    return [action.name for action in plan.actions if isinstance(action, DeletePod)]  # type: ignore[attr-defined]


def test_a_new_job_gets_its_group_before_its_pods() -> None:
    found = planned(job(framework=Framework.PYTORCH), JobStatus())
    kinds = [type(action) for action in found.actions if not isinstance(action, TellEvent)]
    assert kinds == [EnsureObject, EnsureObject, CreatePod, CreatePod]
    group = next(action for action in found.actions if isinstance(action, EnsureObject))
    assert group.kind is MadeKind.POD_GROUP and group.body["spec"] == {"minMember": 2}
    assert (found.status.phase, found.status.queued_seconds) == (JobPhase.PENDING, NOW)


def test_a_look_that_changes_nothing_writes_nothing() -> None:
    """Whatever the phase: the second plan of the same facts has the same status, and nothing to do."""
    cluster = Cluster(job(ttl_seconds=60.0))
    for _ in range(4):
        cluster.look()
        cluster.look()
        again = planned(cluster.job, cluster.status, cluster.pods.values(), cluster.now)
        assert again.status == cluster.status
        assert not created(again) or cluster.status.phase is JobPhase.PENDING
        cluster.run_all()
        cluster.now += 1


def test_from_pending_to_running() -> None:
    cluster = Cluster(job())
    cluster.look()
    cluster.change("train-worker-0", waits="no room")
    assert cluster.look().status.phase is JobPhase.QUEUED and cluster.status.message == "no room"
    cluster.run_all()
    assert cluster.look().status.phase is JobPhase.RUNNING
    assert cluster.status.allocation.nodes == ("n1",) and cluster.status.tasks == {"worker": TaskCounts(running=2)}


def test_ten_evictions_end_no_job_and_three_failures_do() -> None:
    cluster = Cluster(job())
    for number in range(10):
        cluster.now += 300.0  # its rest between two restarts
        cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
        cluster.change("train-worker-0", evicted=True, leaving=True)
        cluster.look()
        assert (cluster.status.phase, cluster.status.evictions) == (JobPhase.RESTARTING, number + 1)
        cluster.clear()
    for number in range(3):
        cluster.now += 300.0
        cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
        cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)
        cluster.look()
        assert cluster.status.failures == number + 1
        cluster.clear()
    assert (cluster.status.phase, cluster.status.reason) == (JobPhase.FAILED, "TooManyFailures")
    assert cluster.status.message == "pod train-worker-1 failed with exit code 1"


def test_a_job_that_restarts_again_and_again_rests() -> None:
    """The first time not; then twice as long each time, up to five minutes, and it goes on by itself."""
    cluster, rests = Cluster(job()), list[float]()
    for _ in range(9):
        cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
        assert cluster.status.phase is JobPhase.RUNNING
        cluster.change("train-worker-0", evicted=True, leaving=True)
        cluster.look()
        cluster.clear()
        cluster.settle()
        began, again = cluster.now, cluster.look().again_seconds
        while not cluster.pods:
            cluster.now += max(again, 1.0)
            again = cluster.look().again_seconds
        rests.append(round(cluster.now - began, -1))
    assert rests == [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    told = [each.message for each in cluster.status.events if each.reason == "RestartDelayed"]
    assert told[-1] == "it was restarted 9 times in a row: its pods are made again after a rest"
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.now += 700.0
    cluster.change("train-worker-0", evicted=True, leaving=True)
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert cluster.status.in_a_row == 1 and cluster.pods


def test_a_pod_that_is_evicted_again_and_again_rests() -> None:
    """Without a rule that restarts the job: the others run on."""
    cluster = Cluster(job(rules=()))
    for _ in range(3):
        cluster.now += 60.0
        cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING and len(cluster.pods) == 2)
        cluster.change("train-worker-0", evicted=True, leaving=True)
        cluster.look()
        cluster.clear()
    rest = cluster.status.rest_seconds
    assert rest >= cluster.now + 10.0
    assert created(cluster.look()) == [] and list(cluster.pods) == ["train-worker-1"]
    cluster.now = rest
    assert created(cluster.look()) == ["train-worker-0"]


def test_what_fails_beside_an_eviction_is_no_failure() -> None:
    """Peers of a pod that was evicted end for the lack of it."""
    pods = [pod(0, PodPhase.FAILED, exit_code=1), pod(1, evicted=True)]
    found = planned(job(), running(), pods)
    assert (found.status.failures, found.status.evictions, found.status.phase) == (0, 1, JobPhase.RESTARTING)


def test_a_restart_deletes_all_pods_and_waits_for_the_last() -> None:
    found = planned(job(), running(), [pod(0, PodPhase.FAILED), pod(1)])
    assert deleted(found) == ["train-worker-0", "train-worker-1"] and created(found) == []
    found = planned(job(), found.status, [pod(1, leaving=True, evicted=True)])
    assert found.status.phase is JobPhase.RESTARTING and deleted(found) == created(found) == []
    found = planned(job(), found.status, [])
    assert found.status.phase is JobPhase.PENDING and created(found) == ["train-worker-0", "train-worker-1"]


def test_a_restart_of_one_pod_leaves_the_others() -> None:
    rules = (LifecycleRule(RuleAction.RESTART_POD, (PodEvent.FAILED,)),)
    found = planned(job(rules=rules), running(), [pod(0, PodPhase.FAILED), pod(1)])
    assert deleted(found) == ["train-worker-0"] and found.status.failures == 1
    found = planned(job(rules=rules), found.status, [pod(1)])
    assert created(found) == ["train-worker-0"] and found.status.failures == 1


def test_a_pod_that_was_evicted_is_made_again_without_a_rule() -> None:
    found = planned(job(rules=()), running(), [pod(0), pod(1, evicted=True, leaving=True)])
    assert (found.status.phase, found.status.evictions) == (JobPhase.PENDING, 1) and deleted(found) == []
    found = planned(job(rules=()), found.status, [pod(0)])
    assert created(found) == ["train-worker-1"] and found.status.evictions == 1


def test_suspended_and_resumed_by_its_field() -> None:
    cluster = Cluster(job())
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.job = job(suspend=True)
    assert cluster.look().status.phase is JobPhase.SUSPENDING
    cluster.settle()
    assert cluster.status.phase is JobPhase.SUSPENDED and cluster.pods == {}
    cluster.job = job()
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    assert cluster.status.phase is JobPhase.RUNNING and (cluster.status.failures, cluster.status.evictions) == (0, 0)


def test_an_aborted_job_is_not_resumed() -> None:
    rules = (LifecycleRule(RuleAction.ABORT_JOB, (PodEvent.FAILED,)),)
    cluster = Cluster(job(rules=rules))
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)
    cluster.settle()
    assert (cluster.status.phase, cluster.status.reason) == (JobPhase.SUSPENDED, "Aborted")
    assert sorted(cluster.pods) == ["train-worker-1"]  # for its logs


@pytest.mark.parametrize(
    ("action", "phase"),
    [(RuleAction.TERMINATE_JOB, JobPhase.TERMINATED), (RuleAction.COMPLETE_JOB, JobPhase.SUCCEEDED)],
)
def test_rules_that_end_a_job(action: RuleAction, phase: JobPhase) -> None:
    cluster = Cluster(job(rules=(LifecycleRule(action, (PodEvent.FAILED,)),)))
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.change("train-worker-1", phase=PodPhase.FAILED, exit_code=1)
    cluster.settle()
    assert cluster.status.phase is phase and sorted(cluster.pods) == ["train-worker-1"]


def test_a_job_of_the_past_is_deleted() -> None:
    """Once its time is over, and not before."""
    status = JobStatus(phase=JobPhase.SUCCEEDED, reason="Succeeded", ended_seconds=NOW - 59, since_seconds=NOW - 59)
    soon = planned(job(ttl_seconds=60.0), status)
    assert DeleteJob() not in soon.actions and soon.again_seconds == pytest.approx(1.0)
    assert DeleteJob() in planned(job(ttl_seconds=60.0), status, now=NOW + 1).actions
    assert DeleteJob() not in planned(job(), status, now=NOW + 1e6).actions


def test_a_job_that_cannot_be_run_gets_nothing() -> None:
    """And says why, once."""
    broken = job(problem="TrainingJob ml/train: spec.template: is empty")
    found = planned(broken, JobStatus())
    assert (found.status.phase, found.status.reason) == (JobPhase.PENDING, "InvalidSpec")
    assert [type(action) for action in found.actions] == [TellEvent] and "spec.template" in found.actions[0].message
    assert planned(broken, found.status, now=NOW + 5).actions == ()
    mended = planned(job(), found.status)
    assert mended.status.reason == "MakingPods" and len(created(mended)) == 2


def test_a_job_that_goes_is_left_to_the_garbage_collector() -> None:
    found = planned(job(leaving=True), running(), [pod(0)])
    assert found.actions == () and found.status == running()


def test_a_wait_that_is_too_long_is_told() -> None:
    patient = job(group=GroupTerms(minimum=2, wait_seconds=60.0))
    queued = JobStatus(phase=JobPhase.QUEUED, reason="WaitingForNodes", since_seconds=NOW, queued_seconds=NOW)
    pods = [pod(0, PodPhase.PENDING), pod(1, PodPhase.PENDING)]
    early = planned(patient, queued, pods, now=NOW + 59)
    assert "WaitTimeExceeded" not in [each.type for each in early.status.conditions] and early.again_seconds == 1.0
    late = planned(patient, early.status, pods, now=NOW + 60)
    assert "WaitTimeExceeded" in [each.type for each in late.status.conditions]
    assert any(isinstance(action, TellEvent) and action.reason == "WaitTimeExceeded" for action in late.actions)


def test_what_is_not_acted_on_is_told_once() -> None:
    found = planned(job(unmet=("spec.checkpoint: stored",)), JobStatus())
    told = [action for action in found.actions if isinstance(action, TellEvent) and action.reason == "NotActedOn"]
    assert [each.message for each in told] == ["spec.checkpoint: stored"]
    again = planned(job(unmet=("spec.checkpoint: stored",)), found.status, [pod(0), pod(1)])
    assert not any(isinstance(action, TellEvent) and action.reason == "NotActedOn" for action in again.actions)


def test_tasks_that_wait_for_others_are_made_later() -> None:
    """The group needs no more together than there are."""
    cluster = Cluster(job(task("a", 1), task("b", 1, after=TaskDependency(("a",)))))
    found = cluster.look()
    assert created(found) == ["train-a-0"] and cluster.objects["train-12345678"].body["spec"] == {"minMember": 1}
    cluster.run_all()
    found = cluster.look()
    assert created(found) == ["train-b-0"] and cluster.objects["train-12345678"].body["spec"] == {"minMember": 2}


def test_a_priority_that_no_class_has() -> None:
    """No pod gets one that nobody gave out."""
    wanted = job(group=GroupTerms(minimum=2, priority=7))
    found = planned(wanted, JobStatus(), facts=FACTS)
    assert created(found) == [] and "no PriorityClass has the value 7" in found.status.message
    found = planned(wanted, found.status, facts=JobFacts({"seven": 7}))
    pods = [action.body["spec"]["priorityClassName"] for action in found.actions if isinstance(action, CreatePod)]
    assert pods == ["seven", "seven"]


def test_a_class_that_is_gone_holds_up_no_job_that_runs() -> None:
    """It goes on to its end; only new pods are not made."""
    wanted = job(group=GroupTerms(minimum=2, priority_class="gone"))
    done = planned(wanted, running(), [pod(0, PodPhase.SUCCEEDED), pod(1, PodPhase.SUCCEEDED)])
    assert done.status.phase is JobPhase.SUCCEEDED
    restarting = planned(wanted, running(), [pod(0), pod(1, PodPhase.FAILED)])
    assert restarting.status.phase is JobPhase.RESTARTING and len(deleted(restarting)) == 2
    waiting = planned(wanted, planned(wanted, restarting.status, []).status, [])
    assert created(waiting) == [] and "there is no PriorityClass gone" in waiting.status.message
    assert planned(wanted, waiting.status, [], now=NOW + 9).status == waiting.status


def test_pods_above_its_size_go() -> None:
    found = planned(job(), running(), [pod(0), pod(1), pod(2)])
    assert deleted(found) == ["train-worker-2"] and found.status.phase is JobPhase.RUNNING


def test_pods_are_made_one_by_one_and_share_what_they_have_in_common() -> None:
    """A job of a hundred bytes may have a thousand pods, each of which names all others."""
    of = job(task("worker", 1_000), framework=Framework.TENSORFLOW, group=GroupTerms(minimum=1_000, gpu_type="a"))
    tracemalloc.start()
    try:
        found = planned(of, JobStatus())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    first, second = (each.body for each in found.actions if isinstance(each, CreatePod) and each.member.index < 2)
    assert first["spec"]["affinity"] is second["spec"]["affinity"]
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_what_is_told_of_all_members_is_made_once() -> None:
    calls: list[int] = []

    def told(known: Peers) -> int:
        calls.append(1)
        return len(known.members)

    known = peers(job(), (Member("worker", 0), Member("worker", 1)))
    assert [known.shared(told) for _ in known.members] == [2, 2] and calls == [1]


@pytest.mark.parametrize("end", [{"leaving": True, "evicted": True}, {"phase": PodPhase.FAILED}], ids=["goes", "fails"])
def test_the_end_of_a_pod_of_a_run_to_come_begins_no_run(end: dict[str, Any]) -> None:
    """Its author may write the label: each look began a run that left the pod current."""
    rule = LifecycleRule(RuleAction.RESTART_POD, (PodEvent.EVICTED, PodEvent.FAILED))
    cluster = Cluster(job(rules=(rule,), most_failures=1_000))
    cluster.settle(lambda: cluster.status.phase is JobPhase.RUNNING)
    cluster.change("train-worker-0", run=999_999, **end)
    for _ in range(5):
        cluster.look()
    assert cluster.status.run <= 1 and cluster.status.evictions + cluster.status.failures <= 1
