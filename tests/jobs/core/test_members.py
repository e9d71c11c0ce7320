"""Which pods a job is to have, and which of those that exist are its members."""

from __future__ import annotations

from job_cases import job, pod, task

from jobs.core.members import counts, roster, size
from model.job.job import ElasticPolicy, Member, TaskDependency
from model.job.status import JobStatus, PodPhase, TaskCounts


def test_members_in_the_order_of_tasks() -> None:
    found = roster(job(task("master", 1), task("worker", 2)), JobStatus(), [pod(1)])
    assert [each.text for each in found.wanted] == ["master-0", "worker-0", "worker-1"]
    assert [each.text for each in found.missing] == ["master-0", "worker-0"]


def test_a_pod_of_an_earlier_run_is_in_the_way() -> None:
    """Its member is neither there nor missing: the name is taken."""
    status = JobStatus(run=1, floors={"": 1})
    found = roster(job(), status, [pod(0), pod(1, run=1)])
    assert [each.name for each in found.others] == ["train-worker-0"] and found.missing == ()
    assert list(found.current) == [Member("worker", 1)]


def test_floors_of_a_task_and_of_a_member() -> None:
    status = JobStatus(run=2, floors={"worker": 1, "worker-1": 2})
    assert [status.stale(pod(index, run=1)) for index in (0, 1)] == [False, True]
    assert not status.stale(pod(0, task="master"))


def test_pods_that_are_not_wanted() -> None:
    found = roster(job(), JobStatus(), [pod(0), pod(5), pod(0, task="gone")])
    assert sorted(each.name for each in found.others) == ["train-gone-0", "train-worker-5"]


def test_tasks_wait_for_others() -> None:
    both = job(task("a", 1), task("b", 1), task("c", 1, after=TaskDependency(("a", "b"))))
    either = job(task("a", 1), task("b", 1), task("c", 1, after=TaskDependency(("a", "b"), every=False)))
    pods = [pod(0, task="a"), pod(0, PodPhase.PENDING, "b")]
    assert Member("c", 0) not in roster(both, JobStatus(), pods).wanted
    assert Member("c", 0) in roster(either, JobStatus(), pods).wanted
    # One that has begun does not go when the other ends.
    assert Member("c", 0) in roster(both, JobStatus(), [*pods, pod(0, task="c")]).wanted


def test_the_size_of_an_elastic_task() -> None:
    elastic = job(task("worker", 6, 2), elastic=ElasticPolicy("worker", 2, 6))
    sizes = [size(elastic, JobStatus(scale=scale), elastic.tasks[0]) for scale in ({}, {"worker": 4}, {"worker": 9})]
    assert sizes == [2, 4, 6]


def test_counts() -> None:
    """A pod that goes, or is of an earlier run, is terminating and nothing else."""
    status = JobStatus(run=1, floors={"worker-2": 1})
    of = job(task("worker", 3))
    found = counts(of, roster(of, status, [pod(0), pod(1, leaving=True), pod(2, PodPhase.FAILED)]))
    assert found == {"worker": TaskCounts(running=1, terminating=2)}
