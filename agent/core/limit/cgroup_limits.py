"""Cgroup limits: how many cgroups a batch pod may have below its own (cgroup v2).

The kernel charges a part of what a cgroup takes to nobody (6 to 10 KB each were measured on Linux 6.1), and who is root
in a container may make them without end: memory of the node that no limit counts. cgroup v1 has no such file. Source:
kernel Documentation/admin-guide/cgroup-v2.rst, cgroup.max.descendants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.core.limit.ownership import looser
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import cgroups_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Observation, Places
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import SuppressStrategy


def pods_cgroups_to_read(
    layout: Layout, places: Places, pods: Iterable[Pod], strategy: SuppressStrategy
) -> tuple[Knob, ...]:
    """The files of batch pods below the best-effort root, where they are to have a limit; none on v1."""
    return tuple(knob for _, knob in _batch_pods(layout, places, pods, strategy))


def pods_cgroups(
    layout: Layout, observation: Observation, pods: Iterable[Pod], strategy: SuppressStrategy
) -> Iterator[Limit]:
    """What each may have, of those whose file was read; never more than whoever made the cgroup wanted."""
    for pod, knob in _batch_pods(layout, observation.places, pods, strategy):
        reading = observation.knobs.get(knob)
        if reading is None or isinstance(reading.kernel, Missing):
            continue
        terms = TermSum().add("cgroups of a pod", strategy.pod_cgroups or 0, "by setting")
        before = reading.original if reading.last_written is not None else reading.kernel
        if isinstance(before, int) and looser(terms.value, before):
            terms.become("limit before us", before)
        reason, now, about = Reason.CGROUPS_LIMITED, observation.at_seconds, f"pod {pod.key}"
        decision = Decision(knob.subject, knob.file, terms.value, Unit.NUMBER, reason, terms.terms, "", now, about)
        yield Limit(knob, terms.value, decision)


def _batch_pods(
    layout: Layout, places: Places, pods: Iterable[Pod], strategy: SuppressStrategy
) -> Iterator[tuple[Pod, Knob]]:
    if layout.version != 2 or not strategy.enable or strategy.pod_cgroups is None:
        return
    for pod in pods:
        place = places.pods.get(pod.uid)
        if place is not None and place.path.startswith(f"{layout.best_effort}/") and pod.borrows and not pod.terminal:
            yield pod, cgroups_knob(place.path)
