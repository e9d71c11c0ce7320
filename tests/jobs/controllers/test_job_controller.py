"""On a real API server: jobs become pods, whoever is killed after any write, and only those that are ours to run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import msgspec
import pytest
import yaml
from scheduler_processes import POD_GROUP_CRD, Cluster

from jobs.controllers.job_controller import VOLCANO_DEFINITION, JobController
from jobs.core.plan import plan
from jobs.core.policy import JobPolicy
from jobs.edge.job_writer import KubernetesJobWriter
from kube import objects
from kube.client import KubeClient
from kube.events import EventRecorder
from kube.informer import Informer
from model.fault import KubernetesFault
from model.job.actions import CreatePod, DeleteCommand, DeletePod, EnsureObject
from model.job.job import Job, Member
from model.job.status import JobStatus

pytestmark = pytest.mark.e2e

CRDS = Path(__file__).parent.parent.parent.parent / "deploy/crds/optional"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRAINING = "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
VOLCANO = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "scheduling.sigs.k8s.io/v1alpha1/podgroups"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
TEMPLATE = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "image"}]}}


class Killed(Exception):
    """The process was killed."""


class Killer:
    """A writer whose process is killed before, or after, a write; the write itself is made in the second case."""

    def __init__(self, inner: KubernetesJobWriter, writes: int, *, after: bool) -> None:
        self._inner = inner
        self._left = writes
        self._after = after
        self.dead = asyncio.Event()

    async def _one(self, write: Awaitable[Any]) -> Any:
        self._left -= 1
        if self.dead.is_set() or (self._left < 0 and not self._after):
            self.dead.set()
            write.close()  # type: ignore[attr-defined]
            await asyncio.Event().wait()
        answer = await write
        if self._left < 0:
            self.dead.set()
            await asyncio.Event().wait()
        return answer

    async def status(self, job: Job, before: Any, wanted: dict[str, Any]) -> bool:
        return bool(await self._one(self._inner.status(job, before, wanted)))

    async def create_pod(self, job: Job, action: CreatePod) -> None:
        await self._one(self._inner.create_pod(job, action))

    async def delete_pod(self, job: Job, action: DeletePod) -> None:
        await self._one(self._inner.delete_pod(job, action))

    async def ensure(self, job: Job, action: EnsureObject) -> None:
        await self._one(self._inner.ensure(job, action))

    async def delete_job(self, job: Job) -> None:
        await self._one(self._inner.delete_job(job))

    async def delete_command(self, job: Job, action: DeleteCommand) -> None:
        await self._one(self._inner.delete_command(job, action))


class Rig:
    """A cluster with the definitions of jobs, and requests against it."""

    def __init__(self, cluster: Cluster, client: KubeClient) -> None:
        self.cluster = cluster
        self.client = client
        self.kept = True
        self.asked: list[str] = []
        self.finished: list[tuple[str, str]] = []
        cluster.request("POST", DEFINITIONS, POD_GROUP_CRD)
        for file in (
            "sublet/trainingjobs.yaml",
            "volcano/jobs.yaml",
            "volcano/podgroups.yaml",
            "volcano/commands.yaml",
        ):
            cluster.request("POST", DEFINITIONS, yaml.safe_load((CRDS / file).read_text()))

    def controller(self, writer: Any = None, policy: JobPolicy | None = None, decide: Any = plan) -> JobController:
        async def keeps(definition: str) -> bool:
            self.asked.append(definition)
            return self.kept

        def finished(job: Job, status: JobStatus) -> None:
            self.finished.append((job.id.name, status.phase.value))

        recorder = EventRecorder(self.client, "sublet-scheduler", "test")
        return JobController(
            self.client, writer or KubernetesJobWriter(self.client, dict), recorder, lambda: True, keeps,
            time.time, policy=policy, holds=True, finished=finished, decide=decide,
        )  # fmt: skip

    async def call(self, *request: Any) -> Any:
        return await asyncio.to_thread(self.cluster.request, *request)

    async def train(self, name: str = "train", queue: str = "", **spec: Any) -> None:
        labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
        metadata = {"name": name, "labels": labels}
        body = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": metadata}
        told = {"jobType": "PyTorchJob", "resources": {"minReplicas": 3}, "template": TEMPLATE, **spec}
        await self.call("POST", TRAINING, body | {"spec": told})

    async def pods(self) -> dict[str, Any]:
        return {each["metadata"]["name"]: each for each in (await self.call("GET", PODS))["items"]}

    async def become(self, name: str, phase: str) -> None:
        await self.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase}}, MERGE)

    async def status(self, name: str = "train", path: str = TRAINING) -> dict[str, Any]:
        found: dict[str, Any] = (await self.call("GET", f"{path}/{name}")).get("status", {})
        return found

    async def until(self, done: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not await done():
                await asyncio.sleep(0.03)


def play(cluster: Cluster, working: Callable[[Rig], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await KubeClient.connect(cluster.kubeconfig, "test") as client:
            await working(Rig(cluster, client))

    asyncio.run(whole())


class Running:
    """A controller while the block lasts."""

    def __init__(self, controller: JobController) -> None:
        self._controller = controller

    async def __aenter__(self) -> None:
        self._task = asyncio.create_task(self._controller.run())

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def _three(rig: Rig) -> bool:
    return await _pods(rig, 3)


def test_a_job_from_its_pods_to_its_end(cluster: Cluster) -> None:
    """Its group, its Service, its pods; phases as they are, and whoever counts ends hears of it once."""

    async def working(rig: Rig) -> None:
        async with Running(rig.controller()):
            await rig.train()
            await rig.until(lambda: _three(rig))
            pods = await rig.pods()
            assert sorted(pods) == ["train-worker-0", "train-worker-1", "train-worker-2"]
            owner = pods["train-worker-0"]["metadata"]["ownerReferences"][0]
            assert (owner["kind"], owner["controller"]) == ("TrainingJob", True)
            groups = await rig.call("GET", "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups")
            assert [each["spec"] for each in groups["items"]] == [{"minMember": 3}]
            assert (await rig.call("GET", "/api/v1/namespaces/default/services/train"))["spec"]["clusterIP"] == "None"
            for phase, told in (("Running", "Running"), ("Succeeded", "Succeeded")):
                for name in pods:
                    await rig.become(name, phase)

                async def reached(told: str = told) -> bool:
                    return (await rig.status()).get("phase") == told

                await rig.until(reached)

            async def heard() -> bool:
                return rig.finished != []

            await rig.until(heard)
            assert rig.finished == [("train", "Succeeded")] and await _three(rig)

    play(cluster, working)


ELASTIC = {
    "enabled": True,
    "minWorkers": 2,
    "maxWorkers": 3,
    "scalePolicy": {"scaleUpCooldown": "1s", "scaleDownCooldown": "600s"},
}


def test_an_elastic_job_tells_who_trains_together(cluster: Cluster) -> None:
    """Its file follows it, also under a controller that made nothing of it: it is larger once the third pod runs, and
    smaller once that is to go.
    """

    async def working(rig: Rig) -> None:
        async def told(*, generation: int, members: int) -> bool:
            data = (await rig.call("GET", "/api/v1/namespaces/default/configmaps/train-world"))["data"]
            found = msgspec.json.decode(data["world.json"])
            expected = [f"train-worker-{index}" for index in range(members)]
            status = (await rig.status())["world"]
            assert found["generation"] > status["generation"] - 2
            return bool(
                found["members"] == expected
                and (found["generation"], found["size"]) == (generation, members)
                and (status["generation"], status["size"]) == (generation, members)
            )

        async def begins(*indexes: int) -> None:
            for name in (f"train-worker-{index}" for index in indexes):
                target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
                await rig.call("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
                await rig.become(name, "Running")

        async with Running(rig.controller()):
            await rig.train(resources={"minReplicas": 2}, elasticConfig=ELASTIC)
            await rig.until(lambda: _pods(rig, 2))
            assert await told(generation=1, members=2)
            await begins(0, 1)
            await rig.until(lambda: _pods(rig, 3))
            assert await told(generation=1, members=2)
        async with Running(rig.controller()):
            await begins(2)
            await rig.until(lambda: told(generation=2, members=3))
            before = {name: pod["metadata"]["uid"] for name, pod in (await rig.pods()).items()}
            await rig.call("DELETE", f"{PODS}/train-worker-2")
            await rig.until(lambda: told(generation=3, members=2))
            left = {name: pod["metadata"]["uid"] for name, pod in (await rig.pods()).items()}
            assert left.items() <= before.items() and (await rig.status())["phase"] == "Running"

    play(cluster, working)


async def _pods(rig: Rig, number: int) -> bool:
    return len(await rig.pods()) == number


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize(
    "writes",
    [pytest.param(number, marks=[pytest.mark.slow] if number not in (0, 3, 5, 9) else []) for number in range(12)],
)
def test_a_kill_at_each_write_of_a_restart(cluster: Cluster, writes: int, after: bool) -> None:
    """One failure, one restart, one pod of each member, whenever the leader was killed; each of the writes is in the
    table of tests/jobs/core/test_interruptions.py.
    """

    async def working(rig: Rig) -> None:
        async def over() -> bool:
            pods, status = await rig.pods(), await rig.status()
            runs = {each["metadata"]["labels"]["sublet.dev/job-run"] for each in pods.values()}
            return len(pods) == 3 and status.get("phase") == "Queued" and runs == {"1"}

        await rig.train()
        async with Running(rig.controller()):
            await rig.until(lambda: _three(rig))
            for name in await rig.pods():
                await rig.become(name, "Running")

            async def runs() -> bool:
                return (await rig.status()).get("phase") == "Running"

            await rig.until(runs)
        await rig.become("train-worker-1", "Failed")
        killer = Killer(KubernetesJobWriter(rig.client, dict), writes, after=after)
        async with Running(rig.controller(killer)):
            over_first = asyncio.create_task(rig.until(over))
            dead = asyncio.create_task(killer.dead.wait())
            await asyncio.wait([over_first, dead], return_when=asyncio.FIRST_COMPLETED)
            over_first.cancel()
        async with Running(rig.controller()):
            await rig.until(over)
            status = await rig.status()
            assert (status["failures"], status["evictions"], status["run"]["number"]) == (1, 0, 1)

    play(cluster, working)


def test_volcanos_jobs_where_volcano_runs_itself(cluster: Cluster) -> None:
    """Nothing is made of them, and nothing written."""

    async def working(rig: Rig) -> None:
        rig.kept = False
        task = {"name": "w", "replicas": 1, "template": TEMPLATE}
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}}
        await rig.call("POST", VOLCANO, body | {"spec": {"tasks": [task]}})
        async with Running(rig.controller()):
            await rig.train()
            await rig.until(lambda: _three(rig))
            assert VOLCANO_DEFINITION in rig.asked and await rig.status("v", VOLCANO) == {}
        rig.kept = True
        async with Running(rig.controller()):

            async def made() -> bool:
                return "v-w-0" in await rig.pods()

            await rig.until(made)

    play(cluster, working)


@pytest.mark.parametrize("kept", [True, False], ids=["ours", "another's"])
def test_one_that_names_a_local_queue(cluster: Cluster, kept: bool) -> None:
    """It makes no pods before its templates say that it was admitted, where Workloads are ours to act on."""

    async def working(rig: Rig) -> None:
        rig.kept = kept

        async def suspended() -> bool:
            return (await rig.status()).get("phase") == "Suspended"

        async with Running(rig.controller()):
            await rig.train(queue="a")
            if kept:
                await rig.until(suspended)
                assert await rig.pods() == {}
                admitted = {"metadata": {"annotations": {"kueue.x-k8s.io/workload": "w"}}}
                await rig.call("PATCH", f"{TRAINING}/train", {"spec": {"template": admitted}}, MERGE)
            await rig.until(lambda: _three(rig))

    play(cluster, working)


def test_what_is_switched_off_does_nothing(cluster: Cluster) -> None:
    async def working(rig: Rig) -> None:
        await asyncio.wait_for(rig.controller(policy=JobPolicy(enabled=False)).run(), 1)

    play(cluster, working)


def test_a_name_that_is_taken(cluster: Cluster) -> None:
    """Nothing of another's is touched; the job goes on once the name is free."""

    async def working(rig: Rig) -> None:
        service = {"metadata": {"name": "train"}, "spec": {"ports": [{"port": 80}]}}
        await rig.call("POST", "/api/v1/namespaces/default/services", {"apiVersion": "v1", "kind": "Service"} | service)
        await rig.train()
        async with Running(rig.controller()):

            async def begun() -> bool:
                return (await rig.status()).get("phase") == "Pending"

            await rig.until(begun)
            await asyncio.sleep(0.3)
            assert await rig.pods() == {}
        found = await rig.call("GET", "/api/v1/namespaces/default/services/train")
        assert found["spec"]["ports"][0]["port"] == 80

    play(cluster, working)


def test_an_error_about_one_job_holds_up_no_other(cluster: Cluster) -> None:
    """It is set aside, and told."""

    async def working(rig: Rig) -> None:
        def decide(job: Job, *facts: Any) -> Any:
            if job.id.name == "broken":
                raise ZeroDivisionError
            return plan(job, *facts)

        await rig.train("broken")
        async with Running(rig.controller(decide=decide)):
            await rig.train()
            await rig.until(lambda: _three(rig))
            assert all(name.startswith("train-worker-") for name in await rig.pods())

    play(cluster, working)


def test_an_error_about_the_pod_of_one_job_holds_up_no_other(cluster: Cluster) -> None:
    """Its object is made as it is written, after the plan."""

    def broken(member: Member) -> Any:
        raise ZeroDivisionError

    def decide(job: Job, *facts: Any) -> Any:
        found = plan(job, *facts)
        if job.id.name != "broken":
            return found
        return msgspec.structs.replace(found, actions=(CreatePod(Member("worker", 0), broken),))

    async def working(rig: Rig) -> None:
        await rig.train("broken")
        async with Running(rig.controller(decide=decide)):
            await rig.until(lambda: _phase_is(rig, "broken"))
            await rig.train()
            await rig.until(lambda: _three(rig))
            assert all(name.startswith("train-worker-") for name in await rig.pods())

    play(cluster, working)


async def _phase_is(rig: Rig, name: str) -> bool:
    return bool((await rig.status(name)).get("phase"))


def test_pods_that_are_forbidden_are_left_for_the_next_look(cluster: Cluster) -> None:
    """Such as by a quota: of forty at most those are asked for that were under way."""
    asked: list[str] = []

    class Forbidding(KubernetesJobWriter):
        async def create_pod(self, job: Job, action: CreatePod) -> None:
            asked.append(action.member.text)
            await asyncio.sleep(0)
            raise KubernetesFault("pods", "exceeded quota", status=403)

    async def working(rig: Rig) -> None:
        await rig.train(resources={"minReplicas": 40})
        async with Running(rig.controller(Forbidding(rig.client, dict))):

            async def some() -> bool:
                return bool(asked)

            await rig.until(some)
            await asyncio.sleep(0.3)
            assert len(set(asked)) == 16

    play(cluster, working)


async def _group_deletions(rig: Rig, controller: JobController) -> None:
    """Tells the controller of PodGroups as the scheduler's own watch does."""
    informer = Informer(rig.client, GROUPS, objects.PodGroup, on_change=controller.saw_group)
    await informer.run()


def test_what_is_deleted_comes_back_while_the_job_runs(cluster: Cluster) -> None:
    """Its Service and its PodGroup, without a restart."""
    paths = {
        "service": "/api/v1/namespaces/default/services/train",
        "group": "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups",
    }

    async def working(rig: Rig) -> None:
        controller = rig.controller()
        async with Running(controller), asyncio.TaskGroup() as group:
            following = group.create_task(_group_deletions(rig, controller))
            await rig.train()
            await rig.until(lambda: _three(rig))
            (made,) = (await rig.call("GET", paths["group"]))["items"]
            before = {paths["service"]: await rig.call("GET", paths["service"])}
            before[f"{paths['group']}/{made['metadata']['name']}"] = made
            for path, found in before.items():
                await rig.call("DELETE", path)

                async def back(path: str = path, uid: str = found["metadata"]["uid"]) -> bool:
                    try:
                        return bool((await rig.call("GET", path))["metadata"]["uid"] != uid)
                    except HTTPError:
                        return False

                await rig.until(back, 10.0)
            assert (await rig.status())["run"]["number"] == 0
            following.cancel()

    play(cluster, working)


def test_a_command_is_obeyed_and_goes(cluster: Cluster) -> None:
    """As vcctl suspends a Job of Volcano, and resumes it."""
    commands = "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands"

    async def working(rig: Rig) -> None:
        task = {"name": "w", "replicas": 1, "template": TEMPLATE}
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}}
        made = await rig.call("POST", VOLCANO, body | {"spec": {"tasks": [task]}})
        target = {**{key: made[key] for key in ("apiVersion", "kind")}, "name": "v", "uid": made["metadata"]["uid"]}

        async def obeyed(action: str, phase: str) -> None:
            order = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "target": target, "action": action}
            await rig.call("POST", commands, order | {"metadata": {"generateName": f"v-{action.lower()}-"}})

            async def reached() -> bool:
                state = (await rig.status("v", VOLCANO)).get("state", {})
                return state.get("phase") == phase and not (await rig.call("GET", commands))["items"]

            await rig.until(reached)

        async with Running(rig.controller()):

            async def running() -> bool:
                return (await rig.status("v", VOLCANO)).get("state", {}).get("phase") == "Pending"

            await rig.until(running)
            await obeyed("AbortJob", "Aborted")
            assert await rig.pods() == {}
            await obeyed("ResumeJob", "Pending")

    play(cluster, working)
