"""The ReplicaSet controller: carries out what `replica_set_plan` decides."""

from __future__ import annotations

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.objects import Object, being_deleted, controller_of
from embedded.apiserver.apimachinery.resource_types import PODS, REPLICA_SETS
from embedded.apiserver.reconciling.adoption import Children
from embedded.apiserver.reconciling.pod_control import ControlledPods, write_status
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event
from embedded.apiserver.workloads.pods import SeenPods, WorkloadPod
from embedded.apiserver.workloads.replica_set_plan import ReplicaSetPlan, plan_replica_set, replica_set_status


class ReplicaSetController:
    """Looks at a ReplicaSet when it or a pod of it changes, and when a pod has been ready for long enough."""

    def __init__(self, resources: Resources, writes: AdmittedWrites) -> None:
        self._resources = resources
        self._family = Children(resources, REPLICA_SETS, PODS)
        self._pods = ControlledPods(resources, writes, REPLICA_SETS, "replicaset-controller")
        self._seen = SeenPods()
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == PODS.id:
            self._family.tell(event, self.waiting)
            if gone:
                self._seen.forget(record.uid)
        elif type_id == REPLICA_SETS.id and gone:
            self.waiting.forget(record.key)
        elif type_id == REPLICA_SETS.id:
            self.waiting.now(record.key)

    async def advance(self, key: Key) -> None:
        """Take one ReplicaSet a step further."""
        replica_set = self._resources.find(REPLICA_SETS, *key)
        if replica_set is None:
            return
        pods = [self._seen.of(record) for record in self._family.children(replica_set)]
        failure = None
        if not being_deleted(replica_set):
            too_many = sum(pod.active for pod in pods) > replica_set["spec"]["replicas"]
            related = self._related(replica_set, pods) if too_many else []
            plan = plan_replica_set(replica_set, pods, related, self._resources.clock())
            if plan.look_again is not None:
                self.waiting.at(key, plan.look_again)
            failure = await self._carry_out(key, replica_set, plan)
        fresh = replica_set_status(replica_set, pods, failure, self._resources.clock())
        write_status(self._resources, REPLICA_SETS, replica_set, fresh)

    async def _carry_out(self, key: Key, replica_set: Object, plan: ReplicaSetPlan) -> str | None:
        """Why it could not be done in full; what was refused is tried again after a pause that grows."""
        if plan.delete:
            return self._pods.delete(replica_set, plan.delete)
        if not plan.create:
            self.waiting.accepted(key)
            return None
        if self.waiting.must_pause(key, self._resources.clock()):
            return "creating pods waits after a refusal"
        failure = await self._pods.create(replica_set, [replica_set["spec"]["template"]] * plan.create)
        if failure is None:
            self.waiting.accepted(key)
        else:
            self.waiting.refused(key, self._resources.clock())
        return failure

    def _related(self, replica_set: Object, own: list[WorkloadPod]) -> list[WorkloadPod]:
        """The pods of all ReplicaSets that the same owner has."""
        owner, store = controller_of(replica_set), self._resources.store
        if owner is None:
            return own
        sets = [place for place in store.children(owner["uid"]) if place[0] == REPLICA_SETS.id]
        uids = [record.uid for place in sets if (record := store.get(*place)) is not None]
        places = [place for uid in uids for place in store.children(uid) if place[0] == PODS.id]
        return [self._seen.of(record) for place in places if (record := store.get(*place)) is not None]
