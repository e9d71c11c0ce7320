"""Names, ranks and ports of peers."""

from __future__ import annotations

from job_cases import job, task

from jobs.core.peers import ElasticPeers, peers, pod_name
from model.job.job import ElasticPolicy, Member

CONTAINER = {
    "name": "main",
    "resources": {"limits": {"nvidia.com/gpu": "8"}},
    "ports": [{"name": "p", "containerPort": 9}],
}
MEMBERS = (Member("master", 0), Member("worker", 0), Member("worker", 1))


def test_ranks_count_through_tasks() -> None:
    """So that master 0 and worker 0 are two."""
    known = peers(job(task("master", 1), task("worker", 2)), MEMBERS)
    assert [known.rank(each) for each in MEMBERS] == [0, 1, 2] and known.of("worker") == MEMBERS[1:]
    assert known.host(MEMBERS[2]) == "train-worker-1.train" and pod_name("train", MEMBERS[0]) == "train-master-0"


def test_slots_and_ports_are_the_containers() -> None:
    known = peers(job(task(template={"spec": {"containers": [CONTAINER]}})), MEMBERS)
    assert (known.slots, known.port("p", 1), known.port("q", 1)) == (8, 9, 1)
    assert peers(job(), MEMBERS).slots == 1


def test_bounds_of_an_elastic_job_are_those_of_all_its_sets() -> None:
    """What meets is of one run of the whole job: a pod that was made again meets the others."""
    of = job(task("master", 1), task("worker", 4, 2), elastic=ElasticPolicy("worker", 2, 4))
    assert peers(of, MEMBERS, 3).elastic == ElasticPeers(3, 5, f"{of.uid}-3")
    assert peers(job(), MEMBERS, 3).elastic is None
