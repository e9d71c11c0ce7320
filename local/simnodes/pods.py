"""A pod of a simulated node: as the API has it, as the model has it, and where its life stands. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects import times
from embedded.node.objects.pod import PodContainer, PodObject
from embedded.node.pods.admission import Rejection
from embedded.node.pods.pod_status import pod_status, rejected_status
from kube import objects
from kube.dialects.upstream import core_objects
from local.simnodes import lifecycle
from local.simnodes.lifecycle import PodLife, PodPlan, PodStage
from local.simnodes.settings import Pace
from model.fault import ConfigurationFault
from model.pod.pod import Pod
from model.pod.status import PodPhase

# To the agent's rules every end is the same.
_PHASES = {PodStage.CREATING: PodPhase.PENDING, PodStage.OVER: PodPhase.SUCCEEDED, PodStage.GONE: PodPhase.SUCCEEDED}


class SimulatedPod(msgspec.Struct):
    """`object` as last seen; `pod` has the phase that follows from `life`."""

    object: PodObject
    pod: Pod
    plan: PodPlan
    life: PodLife

    def becomes(self, life: PodLife) -> None:
        self.life = life
        self.pod = _at(self.pod, life)

    def status(self, now: float) -> dict[str, Any]:
        """The body of a strategic patch of `status`."""
        qos, at = self.pod.status.kubernetes_qos, lifecycle.moment(now)
        if self.life.failure and not self.life.taken_in:
            return rejected_status(KubernetesQoS(qos), self.life.failure, at)
        shown = lifecycle.view(self.object, self.life, qos)
        return pod_status(shown, self.plan.restart_policy, self.object.status.conditions or (), at)


def taken_in(seen: PodObject, refusal: Callable[[Pod], Rejection | None], pace: Pace, now: float) -> SimulatedPod:
    """A pod that is new here; one that says something unreadable is refused with the words of the fault."""
    try:
        pod, plan = _model(seen), lifecycle.plan_of(seen, pace)
    except ConfigurationFault as fault:
        named = Pod(seen.metadata.namespace, seen.metadata.name, seen.uid)
        unreadable = Rejection("UnexpectedAdmissionError", f"Pod was rejected: {fault}")
        return _begun(seen, named, PodPlan(pace), lifecycle.refused(unreadable, now))
    if seen.status.phase == PodPhase.RUNNING:
        return _begun(seen, pod, plan, _resumed(seen, plan, now))
    rejection = refusal(pod)
    life = lifecycle.refused(rejection, now) if rejection else lifecycle.admitted(plan, now)
    return _begun(seen, pod, plan, life)


def _begun(seen: PodObject, pod: Pod, plan: PodPlan, life: PodLife) -> SimulatedPod:
    return SimulatedPod(seen, _at(pod, life), plan, life)


def _at(pod: Pod, life: PodLife) -> Pod:
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=_phase(life)))


def _resumed(seen: PodObject, plan: PodPlan, now: float) -> PodLife:
    started = times.moment(seen.status.start_time)
    count = max((each.restart_count for each in seen.status.container_statuses or ()), default=0)
    return lifecycle.resumed(plan, started.timestamp() if started else now, count, now)


def _phase(life: PodLife) -> PodPhase:
    return _PHASES.get(life.stage, PodPhase.RUNNING)


def _model(seen: PodObject) -> Pod:
    """Raises ConfigurationFault naming the resource that cannot be read."""
    meta, spec = seen.metadata, seen.spec
    init = [_container(each) for each in spec.init_containers or ()]
    return core_objects.pod(
        objects.Pod(
            objects.Metadata(meta.name, meta.namespace, meta.uid, labels=meta.labels, annotations=meta.annotations),
            objects.PodSpec(
                containers=[_container(each) for each in spec.containers],
                init_containers=init,
                overhead=spec.overhead,
                node_name=spec.node_name,
                node_selector=spec.node_selector,
                priority=spec.priority,
            ),
        )
    )


def _container(source: PodContainer) -> objects.Container:
    asked = source.resources
    resources = None if asked is None else objects.Resources(asked.requests, asked.limits)
    return objects.Container(source.name, resources, source.restart_policy)
