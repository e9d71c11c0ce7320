"""The DaemonSet controller: carries out what `daemon_set_plan` decides, and keeps the history of the template."""

from __future__ import annotations

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of, namespace_of, uid_of
from embedded.apiserver.apimachinery.resource_types import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from embedded.apiserver.apimachinery.selectors import EVERYTHING
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.reconciling.adoption import Children, owner_reference
from embedded.apiserver.reconciling.pod_control import ControlledPods, write_status
from embedded.apiserver.reconciling.template_hash import REVISION_HASH
from embedded.apiserver.reconciling.work_queue import Key, WorkQueue
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.records import Change, Event, Record
from embedded.apiserver.workloads.controller_revisions import forgotten, hash_of, history_of, new_revision, patch_of
from embedded.apiserver.workloads.daemon_nodes import DaemonNode, daemon_template, decode_daemon_node
from embedded.apiserver.workloads.daemon_set_plan import DaemonSetPlan, DaemonView, daemon_set_status, plan_daemon_set
from embedded.apiserver.workloads.pods import SeenPods, WorkloadPod

_FIRST_REST_SECONDS = 1.0
_LONGEST_REST_SECONDS = 900.0


class DaemonSetController:
    """Looks at a DaemonSet when it or a pod of it changes, and at all of them when a node does in a way that counts."""

    def __init__(self, resources: Resources, writes: AdmittedWrites) -> None:
        self._resources = resources
        self._writes = writes
        self._family = Children(resources, DAEMON_SETS, PODS)
        self._history = Children(resources, DAEMON_SETS, CONTROLLER_REVISIONS)
        self._pods = ControlledPods(resources, writes, DAEMON_SETS, "daemonset-controller")
        self._seen = SeenPods()
        self._nodes: dict[str, DaemonNode] = {}
        self._rests = _Rests()
        self.waiting = WorkQueue()

    def react(self, type_id: str, event: Event) -> None:
        record, gone = event.record, event.change is Change.DELETED
        if type_id == NODES.id:
            self._node_changed(record, gone)
        elif type_id == CONTROLLER_REVISIONS.id:
            self._history.tell(event, self.waiting)
        elif type_id == PODS.id:
            self._family.tell(event, self.waiting)
            if gone:
                self._seen.forget(record.uid)
        elif type_id == DAEMON_SETS.id and gone:
            self.waiting.forget(record.key)
            self._rests.forget(record.uid)
        elif type_id == DAEMON_SETS.id:
            self.waiting.now(record.key)

    def _node_changed(self, record: Record, gone: bool) -> None:
        """A node's heartbeat changes nothing that counts here."""
        node = None if gone else decode_daemon_node(record.body)
        if node == self._nodes.get(record.name):
            return
        if node is None:
            del self._nodes[record.name]
        else:
            self._nodes[record.name] = node
        for each in self._resources.store.select(DAEMON_SETS.id, EVERYTHING):
            self.waiting.now(each.key)

    async def advance(self, key: Key) -> None:
        """Take one DaemonSet a step further."""
        daemon_set = self._resources.find(DAEMON_SETS, *key)
        if daemon_set is None or being_deleted(daemon_set):
            return
        pods = [self._seen.of(record) for record in self._family.children(daemon_set)]
        revision = await self._recorded(key, daemon_set, pods)
        if revision is None:
            return
        now = self._resources.clock()
        resting = self._rests.over(daemon_set, now)
        nodes = [self._nodes[name] for name in sorted(self._nodes)]
        view = DaemonView(daemon_set, revision, nodes, pods, frozenset(resting))
        plan = plan_daemon_set(view, now)
        for moment in (plan.look_again, *resting.values()):
            if moment is not None:
                self.waiting.at(key, moment)
        await self._carry_out(key, view, plan)
        write_status(self._resources, DAEMON_SETS, daemon_set, daemon_set_status(view, self._resources.clock()))

    async def _carry_out(self, key: Key, view: DaemonView, plan: DaemonSetPlan) -> None:
        daemon_set, now = view.daemon_set, self._resources.clock()
        for node in plan.failed:
            self._rests.begin(daemon_set, node, now)
        for notice in plan.notices:
            self._pods.tell(daemon_set, notice.reason, notice.message, notice.kind)
        self._pods.delete(daemon_set, plan.delete)
        if not plan.create:
            self.waiting.accepted(key)
        elif not self.waiting.must_pause(key, now):
            templates = (daemon_template(daemon_set, node, view.revision) for node in plan.create)
            if await self._pods.create(daemon_set, templates) is not None:
                self.waiting.refused(key, self._resources.clock())
            else:
                self.waiting.accepted(key)

    # -- history -----------------------------------------------------------------------------------------------

    async def _recorded(self, key: Key, daemon_set: Object, pods: list[WorkloadPod]) -> str | None:
        """The hash of the current template's revision, recorded where it is new; None where that was refused."""
        found = [self._resources.decoded(CONTROLLER_REVISIONS, each) for each in self._history.children(daemon_set)]
        history = history_of(daemon_set, found)
        if history.current is None:
            return await self._record(key, daemon_set, history.number)
        if history.current.get("revision") != history.number:
            numbered = {"revision": history.number}
            self._resources.update(
                CONTROLLER_REVISIONS, key[0], name_of(history.current), lambda held: {**held, **numbered}
            )
        current = hash_of(history.current)
        others = {hash_of(each) for each in history.surplus}
        self._relabel(key[0], [pod for pod in pods if pod.labels.get(REVISION_HASH) in others], current)
        in_use = {pod.labels.get(REVISION_HASH, "") for pod in pods}
        for name in (*map(name_of, history.surplus), *forgotten(daemon_set, history, in_use)):
            self._resources.delete(CONTROLLER_REVISIONS, key[0], name)
        return current

    def _relabel(self, namespace: str, pods: list[WorkloadPod], current: str) -> None:
        """Several records of one template become one, and the pods of each are pods of that one."""

        def changed(held: Object) -> Object:
            held["metadata"]["labels"][REVISION_HASH] = current
            return held

        for pod in pods:
            self._resources.update(PODS, namespace, pod.name, changed)

    async def _record(self, key: Key, daemon_set: Object, number: int) -> str | None:
        wanted = new_revision(daemon_set, number)
        wanted["metadata"]["ownerReferences"] = [owner_reference(DAEMON_SETS, daemon_set)]
        try:
            made = await self._writes.create(CONTROLLER_REVISIONS, key[0], wanted)
        except StatusError as error:
            self.waiting.refused(key, self._resources.clock())
            if error.reason != "AlreadyExists":
                message = f"Error creating revision: {error.message}"
                self._pods.tell(daemon_set, "FailedCreate", message, "Warning")
            elif self._is_another(daemon_set, wanted):
                self._note_collision(daemon_set)
            return None
        return hash_of(made)

    def _is_another(self, daemon_set: Object, wanted: Object) -> bool:
        held = self._resources.find(CONTROLLER_REVISIONS, namespace_of(wanted), name_of(wanted))
        return held is not None and held.get("data") != patch_of(daemon_set)

    def _note_collision(self, daemon_set: Object) -> None:
        count = (dig(daemon_set, "status.collisionCount") or 0) + 1
        fresh = {**(daemon_set.get("status") or {}), "collisionCount": count}
        write_status(self._resources, DAEMON_SETS, daemon_set, fresh)


class _Rests:
    """Until when failed pods are left as they are: a pause that doubles, for each node and generation."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, tuple[int, int, float]]] = {}  # uid → node → generation, pauses, until

    def over(self, daemon_set: Object, now: float) -> dict[str, float]:
        """The nodes that rest, each with the moment when that is over."""
        held, generation = self._held.get(uid_of(daemon_set), {}), daemon_set["metadata"].get("generation", 1)
        return {node: until for node, (of, _, until) in held.items() if of == generation and until > now}

    def begin(self, daemon_set: Object, node: str, now: float) -> None:
        held, generation = self._held.setdefault(uid_of(daemon_set), {}), daemon_set["metadata"].get("generation", 1)
        of, pauses, _ = held.get(node, (generation, 0, 0.0))
        pauses = pauses + 1 if of == generation else 1
        pause = min(_FIRST_REST_SECONDS * 2.0 ** (min(pauses, 12) - 1), _LONGEST_REST_SECONDS)
        held[node] = (generation, pauses, now + pause)

    def forget(self, uid: str) -> None:
        self._held.pop(uid, None)
