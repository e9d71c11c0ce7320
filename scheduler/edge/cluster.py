"""Kubernetes: what changes there, and what the scheduler writes there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from kube import configmap, objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.gangs import membership, podgroups
from kube.dialects.gangs.makers import ALL as MAKERS
from kube.dialects.gangs.makers import Maker, made_pod
from kube.dialects.gangs.volcano import GROUP as VOLCANO
from kube.dialects.queues.dialect import ALL, QueueDialect
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text, withdrawal
from kube.dialects.suspended.workload import API_VERSION as KUEUE_VERSION
from kube.dialects.suspended.workload import GROUP as KUEUE_GROUP
from kube.dialects.suspended.workload import RESOURCE as WORKLOADS
from kube.events import EventRecorder, ObjectRef
from kube.informer import SOON_SECONDS, Change, ChangeKind, Informer
from model.condition import ConditionStatus, ConditionType
from model.fault import KubernetesFault
from model.placement import Placement
from model.pod.colocation import StandingNotice
from model.reason import Reason
from model.suspended.workload import WorkloadAdmission
from model.workload import GangTimes
from scheduler.cache import facts
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.gangs.volcano_phase import VolcanoStatus
from scheduler.ports import NamedObject, WorkloadWriter

log = structlog.get_logger()

POD_GROUPS = "scheduling.sigs.k8s.io/v1alpha1/podgroups"
UPSTREAM_POD_GROUPS = "scheduling.k8s.io/v1beta1/podgroups"
VOLCANO_POD_GROUPS = "scheduling.volcano.sh/v1beta1/podgroups"
VOLCANO_GROUP_DEFINITION = "podgroups.scheduling.volcano.sh"
SCHEDULER_CONFIG = "koordinator-system/koord-scheduler-config"
NODE_CONFIG = "koordinator-system/slo-controller-config"
_OTHERS: tuple[tuple[str, type[Any]], ...] = (
    (UPSTREAM_POD_GROUPS, objects.UpstreamPodGroup),
    ("scheduling.k8s.io/v1alpha3/compositepodgroups", objects.CompositePodGroup),
    ("scheduling.koordinator.sh/v1alpha1/clusternetworktopologies", objects.ClusterNetworkTopology),
    ("slo.koordinator.sh/v1alpha1/nodemetrics", objects.NodeMetric),
    ("topology.node.k8s.io/v1alpha1/noderesourcetopologies", objects.NodeResourceTopology),
)
_QUEUES: dict[QueueDialect, tuple[tuple[str, type[Any]], ...]] = {
    QueueDialect.SUBLET: (("sublet.dev/v1alpha1/queues", objects.Queue),),
    QueueDialect.VOLCANO: (
        ("scheduling.volcano.sh/v1beta1/queues", objects.VolcanoQueue),
        (VOLCANO_POD_GROUPS, objects.VolcanoPodGroup),
    ),
    QueueDialect.ELASTIC_QUOTA: (("scheduling.sigs.k8s.io/v1alpha1/elasticquotas", objects.ElasticQuota),),
}
_KUEUE: tuple[tuple[str, type[Any]], ...] = (
    ("kueue.x-k8s.io/v1beta2/resourceflavors", objects.ResourceFlavor),
    ("kueue.x-k8s.io/v1beta2/topologies", objects.Topology),
    ("kueue.x-k8s.io/v1beta2/workloadpriorityclasses", objects.WorkloadPriorityClass),
    ("kueue.x-k8s.io/v1beta2/cohorts", objects.Cohort),
    ("kueue.x-k8s.io/v1beta2/clusterqueues", objects.ClusterQueue),
    ("kueue.x-k8s.io/v1beta2/localqueues", objects.LocalQueue),
    (WORKLOADS, objects.Workload),
)
"""Followed where the definition is ours: where Kueue runs, its controller decides by them."""
KUEUE_DEFINITION = "clusterqueues.kueue.x-k8s.io"
_EVERYWHERE: tuple[tuple[str, type[Any]], ...] = (
    ("policy/v1/poddisruptionbudgets", objects.PodDisruptionBudget),
    ("v1/persistentvolumeclaims", objects.PersistentVolumeClaim),
    ("v1/persistentvolumes", objects.PersistentVolume),
    ("v1/namespaces", objects.Namespace),
    ("scheduling.k8s.io/v1/priorityclasses", objects.PriorityClass),
)
_JOBS: tuple[str, type[Any]] = ("batch/v1/jobs", objects.Job)
_MAKERS: dict[Maker, tuple[str, type[Any]]] = {
    Maker.JOB_SET: ("jobset.x-k8s.io/v1alpha2/jobsets", objects.JobSet),
    Maker.LEADER_WORKER_SET: ("leaderworkerset.x-k8s.io/v1/leaderworkersets", objects.LeaderWorkerSet),
    Maker.PYTORCH_JOB: ("kubeflow.org/v1/pytorchjobs", objects.PyTorchJob),
}
"""Beside Jobs, which every cluster serves."""
_CRD_WAIT_SECONDS = 2.0


class KubernetesWatch:
    """Everything the scheduler reads as facts, in the order of each collection; of queues those of `dialects`, of what
    makes gangs the kinds `makers`. `controlled` says whether a definition is ours; where that of Kueue's queues is not,
    none of its objects is told.
    """

    def __init__(
        self,
        client: KubeClient,
        enqueue: Callable[[facts.Fact], None],
        dialects: Iterable[QueueDialect] = ALL,
        makers: Collection[Maker] = MAKERS,
        controlled: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._controlled = controlled
        self._serves_kueue: bool | None = None
        self._kueue_known = asyncio.Event()
        self._pods = Informer(client, "v1/pods", objects.Pod, on_change=lambda c: enqueue(facts.PodSeen(c)))
        self._nodes = Informer(client, "v1/nodes", objects.Node, on_change=lambda c: enqueue(facts.NodeSeen(c)))

        def seen(change: Change[Any]) -> None:
            enqueue(facts.ObjectSeen(change))

        def informer(path: str, kind: type[Any], told: Callable[[Change[Any]], None] = seen) -> Informer[Any]:
            """Somebody may define the kind, and create its objects, at any time."""
            return Informer(client, path, kind, on_change=told, undefined_seconds=SOON_SECONDS)

        groups = informer(POD_GROUPS, objects.PodGroup, lambda c: enqueue(facts.PodGroupSeen(c)))
        self._enqueue = enqueue
        config = configmap.follow(client, NODE_CONFIG, seen)
        self._own = configmap.follow(client, SCHEDULER_CONFIG, self._configured)
        self._groups = groups
        dialects = tuple(dialects)
        queues = (kind for dialect in dialects for kind in _QUEUES.get(dialect, ()))
        kueue = _KUEUE if QueueDialect.KUEUE in dialects and controlled is not None else ()
        self._kueue = tuple(informer(path, kind, self._saw_kueue) for path, kind in kueue)
        made = (_MAKERS[maker] for maker in makers if maker in _MAKERS)
        others = (informer(*each) for each in (*_OTHERS, *queues, *made))
        self._others: tuple[Informer[Any], ...] = (config, groups, *others, *self._kueue)
        everywhere = (*_EVERYWHERE, *((_JOBS,) if Maker.JOB in makers else ()))
        self._everywhere: tuple[Informer[Any], ...] = (
            *(informer(*each) for each in everywhere),
            self._nodes,
            self._pods,
        )

    def start(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        """Run the informers in `group`; cancel the tasks to stop them."""
        informers = (self._own, *self._others, *self._everywhere)
        if not self._kueue:
            self._kueue_known.set()
        looks = (self._look_again(), *((self._look_for_kueue(),) if self._kueue else ()))
        return [group.create_task(each) for each in (*looks, *(informer.run() for informer in informers))]

    def reread(self) -> None:
        """Tell every PodGroup, and every pod that has a gang, as if it had changed."""
        for group in list(self._groups.items.values()):
            self._enqueue(facts.PodGroupSeen(Change(ChangeKind.MODIFIED, group)))
        for informer in self._others:
            for item in list(informer.items.values()):
                if isinstance(item, objects.UpstreamPodGroup | objects.VolcanoPodGroup):
                    self._enqueue(facts.ObjectSeen(Change(ChangeKind.MODIFIED, item)))
        for pod in list(self._pods.items.values()):
            if membership.gang_of(pod.metadata, pod.spec.scheduling_group) is not None or made_pod(pod.metadata):
                self._enqueue(facts.PodSeen(Change(ChangeKind.MODIFIED, pod)))

    def _configured(self, change: Change[objects.ConfigMap]) -> None:
        self._enqueue(facts.Configured(None if change.kind is ChangeKind.DELETED else change.object))

    def _saw_kueue(self, change: Change[Any]) -> None:
        """Kueue's objects are told while they are ours to act on."""
        if self._serves_kueue:
            self._enqueue(facts.ObjectSeen(change))

    async def _look_for_kueue(self) -> None:
        """Whose the definition is may change: whoever installs Kueue, or takes it away, replaces it."""
        controlled = self._controlled
        while controlled is not None:
            with suppress(KubernetesFault):
                self._kueue_is_ours(await controlled(KUEUE_DEFINITION))
                self._kueue_known.set()
            await asyncio.sleep(SOON_SECONDS)

    def _kueue_is_ours(self, ours: bool) -> None:
        if ours == self._serves_kueue:
            return
        if self._serves_kueue is not None or ours:
            log.info("Kueue's objects", acted_on=ours)
        self._serves_kueue = ours
        kind = ChangeKind.MODIFIED if ours else ChangeKind.DELETED
        for informer in self._kueue:
            for item in list(informer.items.values()):
                self._enqueue(facts.ObjectSeen(Change(kind, item)))

    async def _look_again(self) -> None:
        """One that went between its first reading and the first list was never there for the informer."""
        await self._own.synced.wait()
        if not self._own.items:
            self._enqueue(facts.Configured(None))

    async def synced(self) -> None:
        """Once what every cluster serves is listed: without budgets the first victims would be the wrong ones.

        The rest is waited for only shortly, since not every cluster serves it, or lets us read it.
        """
        for informer in self._everywhere:
            await informer.synced.wait()
        try:
            async with asyncio.timeout(_CRD_WAIT_SECONDS):
                await asyncio.gather(self._kueue_known.wait(), *(each.synced.wait() for each in self._others))
        except TimeoutError:
            return


async def scheduler_config(client: KubeClient, *, retry_seconds: float = 1.0) -> objects.ConfigMap | None:
    """Koordinator's ConfigMap for schedulers, None where there is none or it may not be read.

    A server that cannot say at this moment is asked again: nobody is evicted before it is known who may be.
    """
    namespace, _, name = SCHEDULER_CONFIG.partition("/")
    while True:
        try:
            return await client.get(path_of("v1/configmaps", namespace=namespace, name=name), objects.ConfigMap)
        except KubernetesFault as fault:
            if fault.status in (403, 404):
                return None
            log.warning("scheduler configuration not read yet", config_map=SCHEDULER_CONFIG, error=str(fault))
        await asyncio.sleep(retry_seconds)


class KubernetesBinder:
    """scheduler.ports.Binder on the binding subresource."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def bind(self, placement: Placement) -> None:
        """Bind with the pod's uid, so that a pod recreated under the same name is never bound by mistake.

        What kubelet or agent must find on the pod comes with the Binding: the API server puts its annotations on the
        pod in the same write (kubernetes pkg/registry/core/pod/storage, setPodNodeAndMetadata).
        """
        namespace, _, name = placement.pod_key.partition("/")
        metadata: dict[str, Any] = {"namespace": namespace, "name": name, "uid": placement.pod_uid}
        if placement.annotations:
            metadata["annotations"] = dict(placement.annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": placement.node},
        }
        await self._client.create(path_of("v1/pods", namespace=namespace, name=name, subresource="binding"), body)

    async def bound(self, placement: Placement) -> bool:
        """Read the pod; one that is gone or of another uid is not bound."""
        namespace, _, name = placement.pod_key.partition("/")
        try:
            pod = await self._client.get(path_of("v1/pods", namespace=namespace, name=name), objects.Pod)
        except KubernetesFault as fault:
            if fault.status == 404:
                return False
            raise
        return (pod.metadata.uid, pod.spec.node_name) == (placement.pod_uid, placement.node)


class KubernetesStatusWriter:
    """scheduler.ports.StatusWriter by patches of /status; `keeps` is whether that of a definition's objects is ours,
    `workloads` writes those of Kueue's Workloads.
    """

    def __init__(
        self, client: KubeClient, keeps: Callable[[str], Awaitable[bool]], workloads: WorkloadWriter | None = None
    ) -> None:
        self._client = client
        self._keeps = keeps
        self._workloads = workloads

    async def admit(self, workload: NamedObject, admission: WorkloadAdmission) -> None:
        """The Workload's own word."""
        if self._workloads is not None:
            await self._workloads.admit(workload, admission)

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        """Patch condition and nomination at once, only on the pod of that uid; a Workload has no nomination."""
        if pod.group == KUEUE_GROUP and self._workloads is not None:
            await self._workloads.pending(pod, message)
            return
        condition = {
            "type": ConditionType.POD_SCHEDULED,
            "status": ConditionStatus.FALSE,
            "reason": Reason.UNSCHEDULABLE,
            "message": message,
        }
        if first:
            condition["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status: dict[str, Any] = {"conditions": [condition]}
        if nominated is not None:
            status["nominatedNodeName"] = nominated or None
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._client.patch(_status_path(pod), body, PatchKind.STRATEGIC)

    async def gang_status(self, gang: NamedObject, status: GangStatus | VolcanoStatus) -> None:
        """Merge-patch the status."""
        told: dict[str, Any] = msgspec.to_builtins(status)
        if isinstance(status, GangStatus):
            told["occupiedBy"], begun = told.pop("occupied_by"), told.pop("start_seconds")
            if begun:
                told["scheduleStartTime"] = _time(begun)
        elif not await self._keeps(VOLCANO_GROUP_DEFINITION):
            return
        path = path_of(_groups(gang), namespace=gang.namespace, name=gang.name, subresource="status")
        await self._client.patch(path, {"metadata": {"uid": gang.uid}, "status": told}, PatchKind.MERGE)

    async def gang_times(self, gang: NamedObject, times: GangTimes) -> None:
        """Merge-patch both annotations; one without a time goes."""
        if gang.group and not await self._keeps(VOLCANO_GROUP_DEFINITION):
            return
        path = path_of(_groups(gang), namespace=gang.namespace, name=gang.name)
        seconds = {podgroups.PARTIAL_SINCE: times.partial_seconds, podgroups.WHOLE_SINCE: times.whole_seconds}
        annotations = {name: _time(at) if at else None for name, at in seconds.items()}
        await self._client.patch(path, {"metadata": {"uid": gang.uid, "annotations": annotations}}, PatchKind.MERGE)

    async def group_condition(self, gang: NamedObject, condition: objects.Condition) -> None:
        """Patch one condition of scheduling.k8s.io's PodGroup; the list merges by type."""
        path = path_of(UPSTREAM_POD_GROUPS, namespace=gang.namespace, name=gang.name, subresource="status")
        told = {name: value for name, value in msgspec.to_builtins(condition).items() if value}
        body = {"metadata": {"uid": gang.uid}, "status": {"conditions": [told]}}
        await self._client.patch(path, body, PatchKind.STRATEGIC)


class KubernetesEvictor:
    """scheduler.ports.Evictor by condition and deletion, as kube-scheduler preempts; a Workload by its status, after
    which its job is suspended.
    """

    def __init__(self, client: KubeClient, workloads: WorkloadWriter | None = None) -> None:
        self._client = client
        self._workloads = workloads

    async def evict(self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True) -> None:
        """404 says that the pod is gone, 409 that another has its name: both are done. A Workload that changed
        meanwhile is read again.
        """
        if pod.group == KUEUE_GROUP and self._workloads is not None:
            await self._workloads.evict(pod, reason, message)
            return
        condition = {
            "type": ConditionType.DISRUPTION_TARGET,
            "status": ConditionStatus.TRUE,
            "reason": reason,
            "message": message,
        }
        condition["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body: dict[str, Any] = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        try:
            await self._patch(pod, body, require_condition)
            await self._client.delete(path_of("v1/pods", namespace=pod.namespace, name=pod.name), uid=pod.uid)
        except KubernetesFault as fault:
            if fault.status not in (404, 409):
                raise

    async def _patch(self, pod: NamedObject, body: Any, required: bool) -> None:
        try:
            await self._client.patch(_status_path(pod), body, PatchKind.STRATEGIC)
        except KubernetesFault as fault:
            if required or fault.status in (404, 409):
                raise
            log.warning("victim deleted without condition DisruptionTarget", pod=pod.key, error=str(fault))


class KubernetesNoticeWriter:
    """scheduler.ports.NoticeWriter by the annotation, written with the status: that right alone is there."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def show(self, pod: NamedObject, notice: StandingNotice) -> None:
        """404 and 409 say that the pod is gone, or another."""
        if pod.group == KUEUE_GROUP:
            return
        annotations = {ANNOTATION_STANDING_NOTICE: notice_text(notice)}
        body = {"metadata": {"uid": pod.uid, "annotations": annotations}}
        try:
            await self._client.patch(_status_path(pod), body, PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status not in (404, 409):
                raise

    async def hide(self, pod: NamedObject, notice: StandingNotice) -> None:
        """422 says that the pod is another, or has another notice or none."""
        if pod.group == KUEUE_GROUP:
            return
        try:
            await self._client.patch(_status_path(pod), withdrawal(notice, pod.uid), PatchKind.JSON)
        except KubernetesFault as fault:
            if fault.status not in (404, 422):
                raise


class KubernetesAnnouncer:
    """scheduler.ports.Announcer by Events with kube-scheduler's reasons and words.

    Those about pods are told by the scheduler name that a pod asks for, as there.
    """

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def scheduled(self, pod: NamedObject, node: str) -> None:
        told = f"Successfully assigned {pod.key} to {node}"
        self._recorder.record(_pod(pod), Reason.SCHEDULED, told, component=pod.scheduler)

    def failed(self, pod: NamedObject, message: str) -> None:
        self._recorder.record(_pod(pod), "FailedScheduling", message, warning=True, component=pod.scheduler)

    def gang(self, gang: NamedObject, reason: str, message: str, *, warning: bool) -> None:
        version = _groups(gang).rpartition("/")[0]
        about = ObjectRef("PodGroup", gang.name, gang.namespace, gang.uid, version)
        self._recorder.record(about, reason, message, warning=warning)

    def configuration(self, config_map: NamedObject, reason: str, message: str, *, warning: bool) -> None:
        about = ObjectRef("ConfigMap", config_map.name, config_map.namespace, config_map.uid)
        self._recorder.record(about, reason, message, warning=warning)

    def preempted(self, pod: NamedObject, note: str) -> None:
        self._recorder.record(_pod(pod), "Preempted", note)

    def unserved(self, pod: NamedObject, message: str) -> None:
        self._recorder.record(_pod(pod), Reason.NOT_ACTED_ON.value, message, warning=True)


def _groups(gang: NamedObject) -> str:
    """The resource that a PodGroup is of."""
    return VOLCANO_POD_GROUPS if gang.group == VOLCANO else POD_GROUPS


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status_path(pod: NamedObject) -> str:
    return path_of("v1/pods", namespace=pod.namespace, name=pod.name, subresource="status")


def _pod(pod: NamedObject) -> ObjectRef:
    """What an Event is about: a pod, or the Workload that stands for pods."""
    if pod.group == KUEUE_GROUP:
        return ObjectRef("Workload", pod.name, pod.namespace, pod.uid, KUEUE_VERSION)
    return ObjectRef("Pod", pod.name, pod.namespace, pod.uid)
