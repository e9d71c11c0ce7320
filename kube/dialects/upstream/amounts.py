"""Requests and limits of a pod over its containers, and the Kubernetes QoS class that follows from them.

Source: k8s.io/component-helpers/resource (PodRequests, PodLimits) and kube-scheduler's non-zero defaults
(pkg/scheduler/util/pod_resources.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from kube import objects
from model.pod.spec import Container
from model.qos import KubernetesQoS
from model.resources import CPU, MEMORY, ResourceVector, countable, parse_resources

SCORED_CPU_MILLIS = 100
SCORED_MEMORY_BYTES = 200 * 1024 * 1024
_SCORED = {CPU: SCORED_CPU_MILLIS, MEMORY: SCORED_MEMORY_BYTES}
_NOTHING = ResourceVector()
_RESIZED = (CPU, MEMORY)
_UNTOLD = objects.PodStatus()
_Counted = Callable[..., int]
_QOS = {member.value: member for member in KubernetesQoS}


class WrittenAmounts(msgspec.Struct, frozen=True):
    """Containers as written; `whole` is what the pod asks for as such, of no name and mostly empty.

    However many containers a pod has, what it asks for as a whole is an amount that 64 bits count with.
    """

    containers: tuple[Container, ...]
    init: tuple[Container, ...]
    whole: Container
    overhead: ResourceVector
    resized: bool = False
    """Something else is wanted than promised or in force."""

    def requests(self) -> ResourceVector:
        """Kubernetes' effective request.

        What the pod asks for as a whole replaces what containers do; its limit stands for a request that neither it
        nor a container makes (https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/).
        """
        summed = _requested(self.containers, self.init)
        if self.whole.requests.amounts or self.whole.limits.amounts:
            limits = {name: self.whole.limits[name] for name in self.whole.limits if name not in summed}
            summed = ResourceVector({**summed.amounts, **limits, **self.whole.requests.amounts})
        return countable(_added(summed, self.overhead))

    def limits(self) -> ResourceVector:
        """Σ containers and sidecars, at least what an init container may use; the pod's own limit replaces that.

        Overhead adds to what is limited at all.
        """
        summed = _combined(
            [item.limits for item in self.containers], [(item.limits, item.sidecar) for item in self.init]
        )
        if self.whole.limits.amounts:
            summed = ResourceVector({**summed.amounts, **self.whole.limits.amounts})
        over = {name: self.overhead[name] for name in self.overhead if name in summed}
        return countable(_added(summed, ResourceVector(over)) if over else summed)

    def scored(self, requests: ResourceVector) -> ResourceVector:
        """`requests` with kube-scheduler's amounts for containers that ask for no CPU or memory.

        Where the pod asks as a whole they stand in only for what nobody asks.
        """
        everyone = (*self.containers, *self.init)
        if self.whole.requests.amounts:
            missing = {name: amount for name, amount in _SCORED.items() if not requests[name]}
            return _added(requests, ResourceVector(missing)) if missing else requests
        if all(CPU in item.requests and MEMORY in item.requests for item in everyone):
            return requests
        filled = _requested([_filled(item) for item in self.containers], [_filled(item) for item in self.init])
        counted = {name: filled[name] + self.overhead[name] for name in _SCORED}
        return countable(ResourceVector({**requests.amounts, **counted}))

    def kubernetes_qos(self, written: str) -> KubernetesQoS:
        """status.qosClass is what the kubelet acts on; computed only before the server has filled it in."""
        if written in _QOS:
            return _QOS[written]
        asked = (*self.containers, *self.init) if self.whole == Container("") else (self.whole,)
        amounts = [(item.requests[name], item.limits[name]) for item in asked for name in (CPU, MEMORY)]
        if not any(request or limit for request, limit in amounts):
            return KubernetesQoS.BEST_EFFORT
        full = all(limit > 0 and request in (0, limit) for request, limit in amounts)
        return KubernetesQoS.GUARANTEED if full else KubernetesQoS.BURSTABLE


def amounts_of(
    spec: objects.PodSpec, where: str, status: objects.PodStatus = _UNTOLD, least: bool = False
) -> WrittenAmounts:
    """Containers, and the pod as a whole, request what counts while they are resized in place, too: the most of what is
    wanted, what the kubelet promised and what is in force; what it refused for good (Infeasible) is only wanted.

    `least`: the least of the three, which they have for certain.
    Raises ConfigurationFault naming the pod `where`, the container and the resource that cannot be read.
    Source: k8s.io/component-helpers/resource (UseStatusResources), KEP-1287, KEP-5419.
    """
    told = {item.name: item for item in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    pending = [each.reason for each in status.conditions or () if each.type == "PodResizePending"]
    refused = "Infeasible" in pending
    counts: _Counted = min if least else _refused if refused else max
    # Of a container that never ran a kubelet tells neither word: what is wanted may be what was refused.
    untold = refused or (least and bool(pending))

    changed = []

    def resized(
        asked: Container,
        source: objects.Resources | None,
        status: objects.ContainerStatus | objects.PodStatus | None,
        field: str,
    ) -> Container:
        found = _resized(asked, source, status, field, counts)
        changed.append(found is not asked)
        return found

    def container(asked: Container, source: objects.Container) -> Container:
        status = told.get(source.name)
        if pending and (status is None or (status.allocated_resources is None and status.resources is None)):
            changed.append(True)
            return _without(asked) if untold else asked
        return resized(asked, source.resources, status, f"{where}: status of container {source.name}")

    whole = _asked(spec.resources, "", f"{where}: spec.resources") if spec.resources else Container("")
    return WrittenAmounts(
        containers=tuple(container(_container(item, where), item) for item in spec.containers),
        init=tuple(container(_init_container(item, where), item) for item in spec.init_containers or ()),
        whole=resized(whole, spec.resources, status, f"{where}: status") if spec.resources else whole,
        overhead=parse_resources(spec.overhead, f"{where}: spec.overhead") if spec.overhead else _NOTHING,
        resized=any(changed),
    )


def _refused(*amounts: int) -> int:
    """Of what is wanted, and then what the kubelet holds."""
    return max(amounts[1:])


def _container(source: objects.Container, where: str) -> Container:
    return _asked(source.resources, source.name, f"{where}: container {source.name}.resources")


def _init_container(source: objects.Container, where: str) -> Container:
    """One that is always restarted is a sidecar."""
    return msgspec.structs.replace(_container(source, where), sidecar=source.restart_policy == "Always")


def _resized(
    asked: Container,
    source: objects.Resources | None,
    told: objects.ContainerStatus | objects.PodStatus | None,
    field: str,
    counts: _Counted,
) -> Container:
    """Nothing but CPU and memory is ever resized. What is told and lacks one of them has none of it: a request that a
    resize adds is only wanted."""
    if told is None:
        return asked
    wanted, promised = (source.requests if source else None) or {}, told.allocated_resources
    in_force = (told.resources.requests or {}) if told.resources else None
    if all(amounts in (None, wanted) for amounts in (promised, in_force)):
        return asked
    texts = {"allocatedResources": promised, "resources.requests": in_force}
    held = [parse_resources(text, f"{field}.{name}") for name, text in texts.items() if text is not None]
    if all(each[name] == asked.requests[name] for each in held for name in _RESIZED):
        return asked
    counted = {name: counts(asked.requests[name], *(each[name] for each in held)) for name in _RESIZED}
    named = {name: amount for name, amount in counted.items() if amount or name in asked.requests}
    return msgspec.structs.replace(asked, requests=ResourceVector({**asked.requests.amounts, **named}))


def _without(asked: Container) -> Container:
    """Nothing of what may be resized."""
    kept = {name: amount for name, amount in asked.requests.amounts.items() if name not in _RESIZED}
    return msgspec.structs.replace(asked, requests=ResourceVector(kept))


def _asked(source: objects.Resources | None, name: str, field: str) -> Container:
    """Of a container, or of the pod as a whole."""
    if source is None:
        return Container(name)
    return Container(
        name=name,
        requests=parse_resources(source.requests, f"{field}.requests") if source.requests else _NOTHING,
        limits=parse_resources(source.limits, f"{field}.limits") if source.limits else _NOTHING,
    )


def _filled(container: Container) -> Container:
    return msgspec.structs.replace(container, requests=ResourceVector({**_SCORED, **container.requests.amounts}))


def _requested(containers: Iterable[Container], init: Iterable[Container]) -> ResourceVector:
    return _combined([item.requests for item in containers], [(item.requests, item.sidecar) for item in init])


def _combined(containers: Sequence[ResourceVector], init: Sequence[tuple[ResourceVector, bool]]) -> ResourceVector:
    """max(Σ containers + Σ sidecars, max over init containers of it + preceding sidecars); `init` says which is one.

    Each amount is looked at once: a pod of thousands of containers and resources costs no more than its size.
    """
    if not init and len(containers) == 1:
        return containers[0]
    together, sidecars, peak = dict[str, int](), dict[str, int](), dict[str, int]()
    for asked in containers:
        for name, amount in asked.amounts.items():
            together[name] = together.get(name, 0) + amount
    for asked, sidecar in init:
        for name, amount in asked.amounts.items():
            reached = sidecars.get(name, 0) + amount
            peak[name] = max(peak.get(name, 0), reached)
            if sidecar:
                sidecars[name] = reached
                together[name] = together.get(name, 0) + amount
    return ResourceVector({name: max(together.get(name, 0), peak.get(name, 0)) for name in (together | peak)})


def _added(left: ResourceVector, right: ResourceVector) -> ResourceVector:
    """The sum; the one itself where the other is empty, as it is for most pods."""
    if not right.amounts:
        return left
    return left + right if left.amounts else right
