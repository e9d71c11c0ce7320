"""What fails between the notice and the end costs no work: the scheduler, the agent, the storage; and who else is told."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.e2e.checkpoints.conftest import FIRST, WORKERS, Training, on, pod_spec
from tests.e2e.conftest import until
from tests.e2e.jobs.manifests import Manifest, task, training, volcano

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STAYS = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(143)); time.sleep(600)"
"""Saves nothing, and is told nothing that it would hear."""


@pytest.fixture
def told(trains: Training) -> Iterator[Training]:
    """A job of three that trains on the first node, and is told to go."""
    job = trains.train("model", maxRetry=1)
    trains.all_run("model", WORKERS)
    trains.reaches_step("model", 20)
    assert job == "trainingjobs/model"
    yield trains
    trains.clear("model", "urgent")


def deadline(of: dict[str, dict[str, str]]) -> float:
    """Unix time."""
    (found,) = {each["deadline"] for each in of.values()}
    return datetime.fromisoformat(found).timestamp()


def preempted(trains: Training, name: str = "model") -> str:
    """The node on which the job ran, which a gang of higher priority is to have."""
    (node,) = trains.nodes(name)
    trains.gang("urgent", node)
    return node


def goes_on(trains: Training) -> None:
    """From the one checkpoint that was begun after the notice, with the loss of a run that nobody stopped."""
    trains.hurry()
    status = trains.reaches("trainingjobs/model", "Succeeded", 150.0)
    (saved,) = trains.saved_steps("model")
    assert trains.begun_after("model") == [saved] * WORKERS and saved >= 20
    assert trains.losses("model") == [trains.uninterrupted_loss()] * WORKERS
    assert (status["failures"], status["evictions"]) == (0, 1), status


def test_the_scheduler_is_killed(told: Training) -> None:
    """As soon as the notice is seen."""
    with told.watched("model") as notices:
        preempted(told)
        assert until(notices, 60.0)
    os.kill(told.cluster.endpoints["programs"]["scheduler"], signal.SIGKILL)
    told.all_run("urgent", WORKERS)
    goes_on(told)


def test_the_agent_is_killed(told: Training) -> None:
    """The notice is on the pod: its node's kubelet passes it on."""
    names = [name for name in told.cluster.endpoints["programs"] if name.startswith("agent")]
    preempted(told)
    for name in names:
        os.kill(told.cluster.endpoints["programs"][name], signal.SIGKILL)
    told.all_run("urgent", WORKERS)
    goes_on(told)


def test_the_storage_fails_for_a_while(told: Training) -> None:
    """It is asked again within the time that there is."""
    folder, away = told.folder / "checkpoints", told.folder / "away"
    if folder.exists():
        folder.rename(away)
    folder.write_text("no folder")
    with told.watched("model") as notices:
        preempted(told)
        assert until(notices, 60.0)
    time.sleep(2.0)
    folder.unlink()
    if away.exists():
        away.rename(folder)
    told.all_run("urgent", WORKERS)
    goes_on(told)


@pytest.fixture
def small_disk(trains: Training) -> Iterator[Path]:
    """Of 1 MB, under the checkpoints."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a file system of its own is mounted")
    disk = trains.folder / "checkpoints"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True, timeout=30)
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True, timeout=30)


def fill(disk: Path) -> Path:
    """To the last byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_the_disk_is_full_for_a_while(small_disk: Path, told: Training) -> None:
    """What was begun and did not fit is no checkpoint; saved again once there is room."""
    filler = fill(small_disk)
    preempted(told)
    assert until(lambda: "No space left on device" in told.logs("model-worker-0"), 60.0), told.logs("model-worker-0")
    assert not told.saved_steps("model")
    filler.unlink()
    told.all_run("urgent", WORKERS)
    goes_on(told)


def test_a_disk_that_stays_full(small_disk: Path, trains: Training) -> None:
    """The deadline holds: the job leaves without what it could not save, and goes on from the checkpoint before."""
    job = trains.train("model", grace="10s", maxRetry=1)
    trains.all_run("model", WORKERS)
    trains.reaches_step("model", 20)
    preempted(trains)
    trains.all_run("urgent", WORKERS)
    (first,) = trains.saved_steps("model")
    trains.clear("urgent")
    trains.all_run("model", WORKERS)
    trains.reaches_step("model", (first // 10 + 2) * 10)
    fill(small_disk)
    trains.gang("urgent", next(iter(trains.nodes("model"))))
    trains.all_run("urgent", WORKERS)
    assert trains.saved_steps("model") == [first]
    trains.clear("urgent")
    trains.hurry()
    status = trains.reaches(job, "Succeeded", 150.0)
    assert trains.begun_after("model") == [first] * WORKERS
    assert trains.losses("model") == [trains.uninterrupted_loss()] * WORKERS
    assert (status["failures"], status["evictions"]) == (0, 2), status
    trains.clear("model")


def test_a_restart_of_the_scheduler_gives_neither_more_time_nor_less(trains: Training) -> None:
    """The deadline that stands on the pods holds."""
    made = training("stays", "", replicas=WORKERS, schedulingConfig={"priorityClassName": "low"})
    made["spec"]["template"] = {"spec": pod_spec([sys.executable, "-c", STAYS], **on(FIRST))}
    made["spec"]["checkpoint"] = {"url": "/nowhere", "gracePeriod": "20s"}
    trains.submit(made)
    trains.all_run("stays", WORKERS)
    before = trains.uids("stays")
    trains.gang("urgent", FIRST)
    ends = deadline(until(lambda: len(found := trains.notices("stays")) == WORKERS and found, 60.0))
    os.kill(trains.cluster.endpoints["programs"]["scheduler"], signal.SIGKILL)
    gone: float = until(lambda: trains.uids("stays").isdisjoint(before) and time.time(), 60.0)
    assert gone >= ends - 0.5, (gone, ends)
    assert gone < ends + 20.0, (gone, ends)
    trains.clear("urgent", "stays")


def test_a_preemptor_that_leaves_takes_the_notice_with_it(trains: Training) -> None:
    made = training("stays", "", replicas=WORKERS, schedulingConfig={"priorityClassName": "low"})
    made["spec"]["template"] = {"spec": pod_spec([sys.executable, "-c", STAYS], **on(FIRST))}
    made["spec"]["checkpoint"] = {"url": "/nowhere", "gracePeriod": "2m"}
    trains.submit(made)
    trains.all_run("stays", WORKERS)
    before = trains.uids("stays")
    trains.gang("urgent", FIRST)
    assert until(lambda: len(trains.notices("stays")) == WORKERS, 60.0)
    trains.clear("urgent")
    assert until(lambda: not trains.notices("stays"), 60.0)
    assert trains.uids("stays") == before
    trains.clear("stays")


LISTENS = "until [ -s $SUBLET_NOTICE_FILE ]; do sleep 0.1; done; cat $SUBLET_NOTICE_FILE; exit 143"


def test_an_ordinary_user_reads_the_notice(trains: Training) -> None:
    """A pod that runs as nobody; who ends once it was told has not failed."""
    made = training("nobody", "", replicas=WORKERS, schedulingConfig={"priorityClassName": "low"}, maxRetry=0)
    spec = pod_spec(["/bin/sh", "-c", LISTENS], **on(FIRST))
    spec["securityContext"] = {"runAsUser": 65534, "runAsNonRoot": True}
    made["spec"] |= {"template": {"spec": spec}, "checkpoint": {"url": "/nowhere", "gracePeriod": "2m"}}
    job = trains.submit(made)
    trains.all_run("nobody", WORKERS)
    trains.gang("urgent", FIRST)
    trains.all_run("urgent", WORKERS)
    status = trains.reaches(job, "Queued")
    assert (status["failures"], status["evictions"]) == (0, 1), status
    trains.clear("urgent", "nobody")


def test_a_volcano_job_keeps_its_age(trains: Training) -> None:
    """Told by its annotation, and by a volume of its own; its PodGroup, by whose age it queues, is the same."""
    made: Manifest = volcano("batch", "", minAvailable=WORKERS, plugins={}, priorityClassName="low", maxRetry=1)
    field = {"fieldPath": "metadata.annotations['sublet.dev/preemption-notice']"}
    volume = {"name": "notice", "downwardAPI": {"items": [{"path": "notice", "fieldRef": field}]}}
    spec = pod_spec(["/bin/sh", "-c", LISTENS], {"SUBLET_NOTICE_FILE": "/etc/told/notice"}, **on(FIRST))
    spec["containers"][0]["volumeMounts"] = [{"name": "notice", "mountPath": "/etc/told"}]
    worker = task("worker", WORKERS, "")
    worker["template"]["spec"] = {**spec, "volumes": [volume], "restartPolicy": "Never"}
    made["metadata"]["annotations"] = {"sublet.dev/preemption-notice-seconds": "60"}
    made["spec"]["tasks"] = [worker]
    job = trains.submit(made)
    trains.all_run("batch", WORKERS)
    groups = ("get", "podgroups.scheduling.volcano.sh", "-o", "jsonpath={.items[*].metadata.uid}")
    before, group = trains.uids("batch"), trains.cluster.kubectl(*groups)
    trains.gang("urgent", FIRST)
    trains.all_run("urgent", WORKERS)
    assert until(lambda: len(trains.uids("batch") - before) == WORKERS, 60.0), trains.status(job)
    status = trains.status(job)
    assert status["state"]["phase"] == "Pending" and trains.cluster.kubectl(*groups) == group, status
    trains.clear("urgent")
    trains.delete(job)
