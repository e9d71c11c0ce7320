"""Objects that all pods of a job share."""

from __future__ import annotations

from typing import Any

import pytest
from job_cases import job, task

from jobs.core.peers import peers
from jobs.core.shared_objects import shared_objects
from model.job.actions import EnsureObject
from model.job.job import Framework, Job, Member

SELECTOR = {"a": "b"}


def made(of: Job) -> dict[str, EnsureObject]:
    members = tuple(Member(each.name, index) for each in of.tasks for index in range(each.replicas))
    return {f"{each.kind}/{each.name}": each for each in shared_objects(of, peers(of, members), SELECTOR)}


CASES: dict[str, tuple[Job, list[str]]] = {
    "nothing": (job(), []),
    "a framework": (job(framework=Framework.PYTORCH), ["Service/train"]),
    "MPI": (job(framework=Framework.MPI), ["Service/train", "ConfigMap/train-mpi", "Secret/train-ssh"]),
    "svc": (job(plugins={"svc": ()}), ["Service/train", "ConfigMap/train-svc", "NetworkPolicy/train"]),
    "svc without its policy": (
        job(plugins={"svc": ("--disable-network-policy",)}), ["Service/train", "ConfigMap/train-svc"],
    ),
    "ssh": (job(plugins={"ssh": ()}), ["Secret/train-ssh"]),
}  # fmt: skip


@pytest.mark.parametrize(("of", "names"), CASES.values(), ids=CASES)
def test_which_there_are(of: Job, names: list[str]) -> None:
    found = made(of)
    assert list(found) == names
    assert all(each.body["metadata"]["ownerReferences"][0]["uid"] == of.uid for each in found.values())


def test_the_service_is_headless_and_early() -> None:
    spec: dict[str, Any] = made(job(framework=Framework.PADDLE))["Service/train"].body["spec"]
    assert spec == {"clusterIP": "None", "selector": SELECTOR, "publishNotReadyAddresses": True}


def test_hosts_follow_the_size_of_the_job() -> None:
    """The ConfigMap is changed, and not only made."""
    found = made(job(task("worker", 2), plugins={"svc": ()}))["ConfigMap/train-svc"]
    assert found.changes == {"data": found.body["data"]} and found.body["data"]["VC_WORKER_NUM"] == "2"


def test_a_secret_has_no_keys_yet() -> None:
    assert list(made(job(plugins={"ssh": ()}))["Secret/train-ssh"].body["stringData"]) == ["config"]
