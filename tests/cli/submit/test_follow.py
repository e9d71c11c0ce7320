"""Following a job: lines where something changed, the log of its first pod, and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from cli.submit.follow import Ended, Follower, end_line, progress_line
from cli.submit.manifest import CommandJob, of_command
from model.fault import KubernetesFault
from model.queue import JobProgress
from tests.kube.conftest import ScriptedServer, says

RANK = "gang.scheduling.koordinator.sh/network-topology-index"
SPEC = of_command(CommandJob(("true",), cpu="1"))["spec"]
NOBODY = ({"message": "not found"}, 404)


def job(stage: str, running: int = 0, uid: str = "u", **status: Any) -> dict[str, Any]:
    told = {"phase": stage, "run": {"stage": stage}, "replicaStatuses": {"worker": {"running": running}}, **status}
    return {"metadata": {"name": "bert", "namespace": "ml", "uid": uid}, "spec": SPEC, "status": told}


def pod(rank: str, uid: str = "p", phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": f"bert-{rank}", "uid": uid, "annotations": {RANK: rank}}, "status": {"phase": phase}}


class Cluster:
    """Answers with each of `jobs` in turn, the last one for ever; `logs` by pod."""

    def __init__(self, *jobs: Any, pods: tuple[Any, ...] = (), logs: dict[str, str] | None = None) -> None:
        self.jobs = list(jobs)
        self.pods = pods
        self.logs = logs or {}
        self.read: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/log"):
            name = request.path.split("/")[-2]
            self.read.append(name)
            if name not in self.logs:
                return await says(*NOBODY)(request)
            return web.Response(text=self.logs[name])
        if request.path.endswith("/pods"):
            assert request.query["labelSelector"] == "sublet.dev/job-uid=u"
            return await says({"items": list(self.pods)})(request)
        found = self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]
        body, status = found if isinstance(found, tuple) else (found, 200)
        return await says(body, status)(request)


def followed(folder: Path, cluster: Cluster) -> tuple[Ended, list[str], list[str]]:
    """How it ended, what people were told, and the log."""
    told, log = list[str](), list[str]()

    async def run() -> Ended:
        server = ScriptedServer(folder)
        client = await server.start()
        server.answers = [cluster.answer]
        try:
            return await Follower(client, "ml", "bert", told.append, log.append, every_seconds=0.01).follow()
        finally:
            await client.close()
            await server.stop()

    return asyncio.run(run()), told, log


def test_a_job_that_succeeds(tmp_path: Path) -> None:
    """A line for each change and none twice; the first pod's log whole, once."""
    going = (job("Queued"), job("Queued"), job("Running", 1), job("Running", 2), job("Running", 2))
    cluster = Cluster(*going, job("Succeeded"), pods=(pod("1"), pod("0")), logs={"bert-0": "one\ntwo\n"})
    ended, told, log = followed(tmp_path, cluster)
    assert ended.succeeded and log == ["one", "two"] and cluster.read == ["bert-0"]
    assert told == [
        "bert: Queued",
        "bert: Running; worker 1 running",
        "bert: Running; worker 2 running",
        "bert: Succeeded",
    ]


ENDS: dict[str, tuple[Any, bool, str]] = {
    "failed": (job("Failed", message="pod failed"), False, "bert failed after 0 s"),
    "deleted": (NOBODY, False, "bert was deleted"),
}


@pytest.mark.parametrize(("last", "succeeded", "line"), ENDS.values(), ids=ENDS)
def test_other_ends(tmp_path: Path, last: Any, succeeded: bool, line: str) -> None:
    ended, _, _ = followed(tmp_path, Cluster(job("Running", 1), last))
    assert (ended.succeeded, end_line("bert", ended)) == (succeeded, line)


def test_another_of_its_name(tmp_path: Path) -> None:
    """One that was made after it was deleted is not the one that was submitted."""
    ended, _, _ = followed(tmp_path, Cluster(job("Running"), job("Running", uid="other")))
    assert ended == Ended(None)


def test_a_server_that_does_not_answer_for_a_while(tmp_path: Path) -> None:
    """It is said once, and asked again."""
    away = ({"message": "overloaded"}, 503)
    ended, told, _ = followed(tmp_path, Cluster(job("Running"), away, away, job("Succeeded")))
    assert ended.succeeded and len([line for line in told if "asking again" in line]) == 1


def test_a_server_that_refuses(tmp_path: Path) -> None:
    with pytest.raises(KubernetesFault, match="forbidden"):
        followed(tmp_path, Cluster(({"message": "forbidden"}, 403)))


def test_a_pod_that_is_made_again(tmp_path: Path) -> None:
    """The log of each pod that is the first, one after the other; a pod without a log keeps nobody."""

    class Restarting(Cluster):
        async def answer(self, request: web.Request) -> web.StreamResponse:
            if len(self.read) == 1 and len(self.jobs) > 1:
                self.pods = (pod("0", "q"),)
            return await super().answer(request)

    cluster = Restarting(*[job("Running", 1)] * 20, job("Succeeded"), pods=(pod("0"),), logs={"bert-0": "begun\n"})
    ended, _, log = followed(tmp_path, cluster)
    assert ended.succeeded and log == ["begun", "begun"]
    ended, _, log = followed(tmp_path, Cluster(*[job("Running", 1)] * 5, job("Succeeded"), pods=(pod("0"),)))
    assert ended.succeeded and log == []


def test_lines() -> None:
    """What has a number, and why it is so, unless that is its reason again."""
    waits = JobProgress("TrainingJob", "Queued", "WaitingForNodes", "0/2 nodes", tasks={"worker": {"pending": 2}})
    assert progress_line("bert", waits) == "bert: Queued; worker 2 pending; 0/2 nodes"
    again = JobProgress("TrainingJob", "Running", "R", "R", failures=1, most_failures=3, evictions=2)
    assert progress_line("bert", again) == "bert: Running; 1 of 3 failures; 2 evictions"
