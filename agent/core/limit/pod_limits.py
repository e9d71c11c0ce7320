"""Pod limits: those of batch and mid pods and their containers, from the batch or mid resources they ask for.

    shares = request x 1024 / 1000, as a weight on v2     quota = limit x 100 us     memory = limit, in whole pages

Kubernetes knows nothing of what is lent, so its own cgroup files would leave such pods without any limit. A pod gets
what its containers get together, or what an init container needs while it runs, if that is more. Its own spec says so,
which nobody can change once the pod is made; a pod outside the best-effort root is the kubelet's to limit, whatever its
labels say (docs/adr/0025). Source: Koordinator pkg/koordlet/runtimehooks/hooks/batchresource (label BE alone),
Kubernetes pkg/kubelet/cm/helpers_linux.go, KEP-753.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent.core.limit.allowance import US_PER_MILLI
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import (
    LARGEST_QUOTA_US,
    SMALLEST_QUOTA_US,
    UNLIMITED,
    memory_knob,
    quota_knob,
    shares_knob,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Places
from model.decision import Decision, TermSum, Unit
from model.explain import amount
from model.pod.pod import Pod
from model.pod.spec import Container
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector

_LENT = {CPU: (BATCH_CPU, MID_CPU), MEMORY: (BATCH_MEMORY, MID_MEMORY)}
"""The names under which each is lent; a pod that asks under both was promised both."""
_FEWEST_SHARES, _MOST_SHARES = 2, 262_144
_LARGEST_WEIGHT = 10_000
_PAGE_BYTES = 4096
_MOST_BYTES = 1 << 53
_MOST_NAMED = 16
_ROUNDED_TO_BYTES = 4 << 20
_KERNEL_PART = 16
"""Page tables and the like are charged too, but not counted as in use: one part in so many on top."""


class _Group(msgspec.Struct, frozen=True):
    """One cgroup, a pod's or a container's, and whose requests and limits count there."""

    cgroup: str
    detail: str
    containers: tuple[Container, ...]
    inits: tuple[Container, ...] = ()

    def names(self, *resources: str) -> bool:
        """Somebody asks for one of the resources or limits it, 0 included."""
        everyone = (*self.containers, *self.inits)
        return any(name in c.requests or name in c.limits for c in everyone for name in resources)


class _Node(msgspec.Struct, frozen=True):
    """What the node makes of requests and limits."""

    layout: Layout
    ratio: float | None
    root_quota_us: int
    in_use: Mapping[str, int]
    at_seconds: float


def pod_limits(
    layout: Layout,
    places: Places,
    pods: Iterable[Pod],
    ratio: float | None,
    root_quota_us: int,
    in_use: Mapping[str, int],
    at_seconds: float = 0.0,
) -> dict[Knob, Limit]:
    """Every limit of pods labelled BE or of band mid that ask for what is lent, of those below the best-effort root.

    `ratio` is the node's CPU normalization, `root_quota_us` what the best-effort root will hold, `in_use` the bytes by
    cgroup path that cannot be dropped: a memory limit below them would kill.
    """
    node = _Node(layout, ratio, root_quota_us, in_use, at_seconds)
    limits = (limit for group in _groups(layout, places, pods) for limit in _limits(node, group))
    return {limit.knob: limit for limit in limits}


def pod_knobs(layout: Layout, places: Places, pods: Iterable[Pod]) -> tuple[Knob, ...]:
    """The control files `pod_limits` speaks of."""
    return tuple(knob for group in _groups(layout, places, pods) for knob in _knobs(layout, group))


def _groups(layout: Layout, places: Places, pods: Iterable[Pod]) -> Iterator[_Group]:
    below = f"{layout.best_effort}/"
    for pod in pods:
        place = places.pods.get(pod.uid)
        if place is None or not place.path.startswith(below) or not pod.borrows or pod.terminal:
            continue
        yield _Group(place.path, f"pod {pod.key}", pod.spec.containers, pod.spec.init_containers)
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            if container.name in place.containers:
                whose = f"pod {pod.key}, container {container.name}"
                yield _Group(place.containers[container.name], whose, (container,))


def _knobs(layout: Layout, group: _Group) -> Iterator[Knob]:
    if group.names(*_LENT[CPU]):
        yield shares_knob(layout, group.cgroup)
        yield quota_knob(layout, group.cgroup)
    if group.names(*_LENT[MEMORY]):
        yield memory_knob(layout, group.cgroup)


def _limits(node: _Node, group: _Group) -> Iterator[Limit]:
    if group.names(*_LENT[CPU]):
        yield _shares(node, group)
        yield _quota(node, group)
    if group.names(*_LENT[MEMORY]):
        yield _memory(node, group)


def _shares(node: _Node, group: _Group) -> Limit:
    millis, note = _together(group, _request, Unit.MILLI_CPU)
    shares = min(max(millis * 1024 // 1000, _FEWEST_SHARES), _MOST_SHARES)
    knob = shares_knob(node.layout, group.cgroup)
    if node.layout.version == 1:
        return _limit(node, group, knob, Unit.SHARES, TermSum().add("requests", shares, note))
    weight = 1 + (shares - _FEWEST_SHARES) * (_LARGEST_WEIGHT - 1) // (_MOST_SHARES - _FEWEST_SHARES)
    return _limit(node, group, knob, Unit.WEIGHT, TermSum().add("requests", weight, f"{note}: {shares} shares"))


def _quota(node: _Node, group: _Group) -> Limit:
    knob = quota_knob(node.layout, group.cgroup)
    if (missing := _without(group, _cpu_limit)) is not None:
        return _limit(node, group, knob, Unit.MICROSECONDS, _no_limit(missing, _named(group, CPU)))
    millis, note = _together(group, _cpu_limit, Unit.MILLI_CPU)
    terms = TermSum().add("limits", millis * US_PER_MILLI, note)
    if node.ratio is not None and node.ratio > 1 and group.names(BATCH_CPU):
        terms.become("normalization", math.ceil(terms.value / node.ratio), f"ratio {node.ratio:g}, rounded up")
    terms.at_least("the kernel's smallest", SMALLEST_QUOTA_US).at_most("the kernel's largest", LARGEST_QUOTA_US)
    if node.layout.version == 1 and node.root_quota_us != UNLIMITED and terms.value > node.root_quota_us:
        terms.become("unlimited", UNLIMITED, f"below the ceiling of {node.root_quota_us} us")
        return _limit(node, group, knob, Unit.MICROSECONDS, terms, Reason.CEILING_IS_TIGHTER)
    return _limit(node, group, knob, Unit.MICROSECONDS, terms)


def _memory(node: _Node, group: _Group) -> Limit:
    knob = memory_knob(node.layout, group.cgroup)
    if (missing := _without(group, _memory_limit)) is not None:
        return _limit(node, group, knob, Unit.BYTES, _no_limit(missing, _named(group, MEMORY)))
    wanted, note = _together(group, _memory_limit, Unit.BYTES)
    terms = TermSum().add("limits", wanted, note)
    terms.become("whole pages", max(wanted // _PAGE_BYTES, 1) * _PAGE_BYTES).at_most("no machine has more", _MOST_BYTES)
    used = node.in_use.get(group.cgroup, 0)
    if used <= terms.value:
        return _limit(node, group, knob, Unit.BYTES, terms)
    room = used + used // _KERNEL_PART
    terms.become("in use already", -(-room // _ROUNDED_TO_BYTES) * _ROUNDED_TO_BYTES, f"{amount(used, Unit.BYTES)}")
    return _limit(node, group, knob, Unit.BYTES, terms, Reason.IN_USE_ALREADY)


def _limit(
    node: _Node, group: _Group, knob: Knob, unit: Unit, terms: TermSum, reason: Reason = Reason.BATCH_RESOURCES
) -> Limit:
    decision = Decision(
        knob.subject, knob.file, terms.value, unit, reason, terms.terms, "", node.at_seconds, group.detail
    )
    return Limit(knob, terms.value, decision)


def _no_limit(container: Container, resource: str) -> TermSum:
    return TermSum().add("unlimited", UNLIMITED, f"{container.name} has no limit of {resource}")


def _without(group: _Group, of: Callable[[Container], int]) -> Container | None:
    """A container that may use as much as there is."""
    return next((c for c in (*group.containers, *group.inits) if not of(c)), None)


def _request(container: Container) -> int:
    """Kubernetes takes the limit for a request that is not there."""
    asks = any(name in container.requests for name in _LENT[CPU])
    return _amount(container.requests if asks else container.limits, CPU)


def _cpu_limit(container: Container) -> int:
    return _tighter(container, CPU)


def _memory_limit(container: Container) -> int:
    return _tighter(container, MEMORY)


def _tighter(container: Container, native: str) -> int:
    """The limit of what is lent, or the kubelet's of the container, where that is less; a limit of 0 is none."""
    return min((limit for limit in (_amount(container.limits, native), container.limits[native]) if limit), default=0)


def _amount(amounts: ResourceVector, native: str) -> int:
    return sum(amounts[name] for name in _LENT[native])


def _named(group: _Group, native: str) -> str:
    """What people call it: batch where anybody asks for that."""
    batch, mid = _LENT[native]
    return batch if group.names(batch) else mid


def _together(group: _Group, of: Callable[[Container], int], unit: Unit) -> tuple[int, str]:
    """The most that runs at one time, and who that is: everybody but init containers, or one of these.

    Each container is looked at a few times, however many there are: a pod of thousands must not hold a tick up.
    """
    most = [*group.containers, *(c for c in group.inits if c.sidecar)]
    largest, starting, sidecars = sum(map(of, most)), -1, 0
    for index, init in enumerate(group.inits):
        asked = of(init)
        if sidecars + asked > largest:
            largest, starting = sidecars + asked, index
        sidecars += asked if init.sidecar else 0
    if starting >= 0:
        most = [group.inits[starting], *(c for c in group.inits[:starting] if c.sidecar)]
    more = f" and {len(most) - _MOST_NAMED} more" if len(most) > _MOST_NAMED else ""
    return largest, ", ".join(f"{c.name} {amount(of(c), unit)}" for c in most[:_MOST_NAMED]) + more
