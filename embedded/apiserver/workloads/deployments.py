"""The Deployment controller: carries out what `deployment_plan` decides."""

from __future__ import annotations

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.objects import Object, controller_of, dig, ensure, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import DEPLOYMENTS, PODS, REPLICA_SETS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.reconciling.adoption import Children, owner_reference
from embedded.apiserver.reconciling.event_recorder import record_event
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.reconciling.pod_control import write_status
from embedded.apiserver.reconciling.template_hash import TEMPLATE_HASH, without_label
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import DeleteOptions, Resources
from embedded.apiserver.storage.records import Change, Event, Record
from embedded.apiserver.workloads.deployment_plan import (
    CREATE_FAILED,
    DeploymentPlan,
    plan_deployment,
    refused_creation,
)
from embedded.apiserver.workloads.deployment_replica_sets import REVISION, SizedReplicaSet, new_and_old, sized

_COMPONENT = "deployment-controller"


class DeploymentController:
    """Looks at a Deployment when it or a ReplicaSet of it changes, when a pod of it is gone, and when it would be late.

    The last pod of another template is what the strategy Recreate waits for.
    """

    def __init__(self, resources: Resources, writes: AdmittedWrites) -> None:
        self._resources = resources
        self._writes = writes
        self._family = Children(resources, DEPLOYMENTS, REPLICA_SETS)
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record = event.record
        if type_id == REPLICA_SETS.id:
            self._family.tell(event, self.waiting)
        elif type_id == PODS.id:
            if event.change is Change.DELETED or record.fields["status.phase"] in ("Succeeded", "Failed"):
                self._pod_ended(record)
        elif type_id == DEPLOYMENTS.id and event.change is Change.DELETED:
            self.waiting.forget(record.key)
        elif type_id == DEPLOYMENTS.id:
            self.waiting.now(record.key)

    def _pod_ended(self, record: Record) -> None:
        for _, *place in self._above(record, REPLICA_SETS.id):
            held = self._resources.store.get(REPLICA_SETS.id, *place)
            for _, namespace, name in () if held is None else self._above(held, DEPLOYMENTS.id):
                self.waiting.now((namespace, name))

    def _above(self, record: Record, type_id: str) -> list[tuple[str, str, str]]:
        """Its owners of one type: (type, namespace, name)."""
        places = (self._resources.store.place_of(uid) for uid in record.owners)
        return [place for place in places if place is not None and place[0] == type_id]

    async def advance(self, key: Key) -> None:
        """Take one Deployment a step further."""
        deployment = self._resources.find(DEPLOYMENTS, *key)
        if deployment is None:
            return
        found = [self._resources.decoded(REPLICA_SETS, record) for record in self._family.children(deployment)]
        plan = plan_deployment(deployment, found, self._old_pods_run(deployment, found), self._resources.clock())
        if plan.look_again is not None:
            self.waiting.at(key, plan.look_again)
        if plan.create is not None and not await self._created(key, deployment, plan.create):
            return
        for each in plan.change:
            await self._change(deployment, each)
        for name in plan.delete:
            self._resources.delete(REPLICA_SETS, key[0], name, DeleteOptions(propagation="Background"))
        for notice in plan.notices:
            self._tell(deployment, notice)
        self._note(deployment, plan)

    def _old_pods_run(self, deployment: Object, replica_sets: list[Object]) -> bool:
        """Whether pods of other templates than the current one have not ended."""
        old = new_and_old(deployment, [sized(each) for each in replica_sets])[1]
        store = self._resources.store
        places = [place for each in old for place in store.children(uid_of(each.obj)) if place[0] == PODS.id]
        pods = (record for place in places if (record := store.get(*place)) is not None)
        return any(pod.fields["status.phase"] not in ("Succeeded", "Failed") for pod in pods)

    # -- ReplicaSets -------------------------------------------------------------------------------------------

    async def _created(self, key: Key, deployment: Object, wanted: Object) -> bool:
        if self.waiting.must_pause(key, self._resources.clock()):
            return False
        wanted["metadata"]["ownerReferences"] = [owner_reference(DEPLOYMENTS, deployment)]
        try:
            await self._writes.create(REPLICA_SETS, key[0], wanted)
        except StatusError as error:
            self._refused(key, deployment, wanted, error)
            return False
        self.waiting.accepted(key)
        if size := wanted["spec"]["replicas"]:
            message = f"Scaled up replica set {name_of(wanted)} from 0 to {size}"
            self._tell(deployment, Notice("ScalingReplicaSet", message))
        return True

    def _refused(self, key: Key, deployment: Object, wanted: Object, error: StatusError) -> None:
        now = self._resources.clock()
        self.waiting.refused(key, now)
        if error.reason == "AlreadyExists":
            if not self._is_the_same(deployment, wanted):
                self._note_collision(deployment)
            return
        why = f'Failed to create new replica set "{name_of(wanted)}": {error.message}'
        self._tell(deployment, Notice(CREATE_FAILED, why, "Warning"))
        write_status(self._resources, DEPLOYMENTS, deployment, refused_creation(deployment, why, now))

    def _is_the_same(self, deployment: Object, wanted: Object) -> bool:
        """Whether what has the name is our own of this template, which the next look will find."""
        held = self._resources.find(REPLICA_SETS, namespace_of(wanted), name_of(wanted))
        if held is None or (controller_of(held) or {}).get("uid") != uid_of(deployment):
            return held is None
        templates = (each["spec"]["template"] for each in (held, deployment))
        ours, theirs = (without_label(template, TEMPLATE_HASH) for template in templates)
        return ours == theirs

    def _note_collision(self, deployment: Object) -> None:
        """Another template has the same short name: the next look finds another."""
        count = (dig(deployment, "status.collisionCount") or 0) + 1
        fresh = {**(deployment.get("status") or {}), "collisionCount": count}
        write_status(self._resources, DEPLOYMENTS, deployment, fresh)

    async def _change(self, deployment: Object, each: SizedReplicaSet) -> None:
        def changed(held: Object) -> Object:
            held["metadata"]["annotations"] = {**(held["metadata"].get("annotations") or {}), **each.annotations}
            held["spec"] |= {"replicas": each.replicas, "minReadySeconds": each.min_ready_seconds}
            return held

        await self._writes.update(REPLICA_SETS, namespace_of(deployment), each.name, changed)

    # -- the Deployment itself ---------------------------------------------------------------------------------

    def _note(self, deployment: Object, plan: DeploymentPlan) -> None:
        """Its revision is an annotation, everything else its status."""

        def changed(held: Object) -> Object:
            ensure(held["metadata"], "annotations")[REVISION] = plan.revision
            return {**held, "status": plan.status}

        held = self._resources.find(DEPLOYMENTS, namespace_of(deployment), name_of(deployment))
        if held is None or uid_of(held) != uid_of(deployment):
            return
        if plan.revision and (held["metadata"].get("annotations") or {}).get(REVISION) != plan.revision:
            self._resources.update(DEPLOYMENTS, namespace_of(held), name_of(held), changed, subresource="status")
        else:
            write_status(self._resources, DEPLOYMENTS, deployment, plan.status)

    def _tell(self, deployment: Object, notice: Notice) -> None:
        record_event(self._resources, deployment, notice.reason, notice.message, _COMPONENT, notice.kind)
