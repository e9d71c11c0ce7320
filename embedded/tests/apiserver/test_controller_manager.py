"""The controllers together: one that waits for a webhook holds up nobody else, and all of them see what was there."""

import asyncio

from embedded.apiserver.admission.admitted_writes import AdmittedWrites, NoAdmissionHooks
from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS, JOBS, PODS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.storage.object_store import NoLog

MAPS = "/api/v1/namespaces/default/configmaps"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


class Slow(NoAdmissionHooks):
    """A webhook that answers when it is told to."""

    def __init__(self):
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    def concern(self, rtype, namespace, subresource):
        return rtype is PODS

    async def mutate(self, draft):
        self.asked.set()
        await self.answer.wait()


def test_a_slow_webhook_holds_up_the_job_alone(api):
    """Meanwhile garbage is collected; the pod comes when the webhook has answered."""
    resources = api.resources

    async def scenario():
        hooks = Slow()
        controllers = Controllers(resources, AdmittedWrites(resources, hooks))
        controllers.start()
        resources.create(JOBS, "default", {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}})
        await hooks.asked.wait()
        absent = {"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "gone"}
        resources.create(CONFIG_MAPS, "default", {"metadata": {"name": "x", "ownerReferences": [absent]}})
        async with asyncio.timeout(10):
            while resources.find(CONFIG_MAPS, "default", "x") is not None:
                await asyncio.sleep(0)
            waiting = resources.store.count(PODS.id)
            hooks.answer.set()
            while not resources.store.count(PODS.id):
                await asyncio.sleep(0)
        await controllers.stop()
        return waiting

    assert asyncio.run(scenario()) == 0


def test_a_job_that_goes_while_its_pod_is_made_leaves_nothing(api):
    """The pod that comes too late has no owner."""
    resources = api.resources

    async def scenario():
        hooks = Slow()
        controllers = Controllers(resources, AdmittedWrites(resources, hooks))
        controllers.start()
        resources.create(JOBS, "default", {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}})
        await hooks.asked.wait()
        code, _ = await _delete_job(api)
        hooks.answer.set()
        await controllers.stop()
        await controllers.settle()
        return code

    assert asyncio.run(scenario()) == 200
    api.settle()
    assert api.get("/api/v1/namespaces/default/pods")["items"] == []


async def _delete_job(api):
    answer = await api._raw("DELETE", "/apis/batch/v1/namespaces/default/jobs/j?propagationPolicy=Background", None, {})
    return answer.status, answer.body


def test_what_was_there_before_is_taken_care_of(api):
    """A job, an orphan and a terminating namespace, as a server finds them that comes back."""
    api.post("/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    api.call("DELETE", "/api/v1/namespaces/a")
    absent = {"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "gone"}
    api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x", "ownerReferences": [absent]}})
    api.controllers = Controllers(api.resources, api.core.writes)
    api.settle()
    assert len(api.get("/api/v1/namespaces/default/pods")["items"]) == 1
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404
    assert api.call("GET", "/api/v1/namespaces/default/configmaps/x")[0] == 404


class FullDisk(NoLog):
    """Takes no changes while it is full."""

    full = False

    def admit(self):
        if self.full:
            raise StatusError(500, "InternalError", "no space left")


def test_what_fails_on_a_full_disk_is_done_when_there_is_space(api):
    """The collector comes back to it, whether it failed at the change or at what the change made due."""
    disk = api.core.store.log = FullDisk()
    owner = api.post(MAPS, {"metadata": {"name": "owner"}})["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner}
    api.post(MAPS, {"metadata": {"name": "child", "ownerReferences": [reference]}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    api.settle()
    api.call("DELETE", f"{MAPS}/owner")
    api.call("DELETE", "/api/v1/namespaces/team")
    disk.full = True
    api.settle()
    api.clock.advance(5)
    api.settle()
    assert api.call("GET", f"{MAPS}/child")[0] == 200
    disk.full = False
    api.clock.advance(60)
    api.settle()
    assert (api.call("GET", f"{MAPS}/child")[0], api.call("GET", "/api/v1/namespaces/team")[0]) == (404, 404)


def test_a_refusal_that_stands_is_not_tried_for_ever(api):
    """Only what time can mend is: an object that nobody may change is left alone until it changes."""
    tried = []

    def refused(name):
        tried.append(name)
        raise StatusError(422, "Invalid", "no")

    api.controllers._guarded(refused, "x")
    api.clock.advance(3600)
    api.settle()
    assert tried == ["x"]
