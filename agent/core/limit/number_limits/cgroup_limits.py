"""Cgroup limits: how many cgroups best effort may have together, and each of its pods below its own (cgroup v2).

A machine has numbers for 65,535 cgroups with memory, without which no container starts, and the kernel charges a part
of what each takes to nobody (6 to 10 KB were measured on Linux 6.1); who is root in a container may make them without
end. cgroup v1 has no such file. Source: kernel Documentation/admin-guide/cgroup-v2.rst, cgroup.max.descendants;
mm/memcontrol.c, MEM_CGROUP_ID_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.core.limit.ownership import no_looser_than_before
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import cgroups_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Observation, Places
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import SuppressStrategy

_TOGETHER = 8192
"""An eighth of what there may be; 110 pods of four containers are some 600."""


def root_cgroups_to_read(layout: Layout, strategy: SuppressStrategy) -> tuple[Knob, ...]:
    """The best-effort root's file, where it is to have a limit."""
    return (cgroups_knob(layout.best_effort),) if _wanted(layout, strategy) else ()


def root_cgroups(layout: Layout, observation: Observation, strategy: SuppressStrategy) -> Iterator[Limit]:
    """All of best effort together, pods without a label included."""
    for knob in root_cgroups_to_read(layout, strategy):
        terms = TermSum().add("cgroups of best effort", _TOGETHER)
        yield from _limit(knob, terms, observation, "")


def pods_cgroups_to_read(
    layout: Layout, places: Places, pods: Iterable[Pod], strategy: SuppressStrategy
) -> tuple[Knob, ...]:
    """The files of pods below the best-effort root, where they are to have a limit; none on v1."""
    return tuple(knob for _, knob in _pods_below(layout, places, pods, strategy))


def pods_cgroups(
    layout: Layout, observation: Observation, pods: Iterable[Pod], strategy: SuppressStrategy
) -> Iterator[Limit]:
    """What each may have, of those whose file was read; never more than whoever made the cgroup wanted."""
    for pod, knob in _pods_below(layout, observation.places, pods, strategy):
        terms = TermSum().add("cgroups of a pod", strategy.pod_cgroups or 0, "by setting")
        yield from _limit(knob, terms, observation, f"pod {pod.key}")


def _limit(knob: Knob, terms: TermSum, observation: Observation, about: str) -> Iterator[Limit]:
    reading = observation.knobs.get(knob)
    if reading is None or isinstance(reading.kernel, Missing):
        return
    no_looser_than_before(terms, reading)
    reason, now = Reason.CGROUPS_LIMITED, observation.at_seconds
    decision = Decision(knob.subject, knob.file, terms.value, Unit.NUMBER, reason, terms.terms, "", now, about)
    yield Limit(knob, terms.value, decision)


def _wanted(layout: Layout, strategy: SuppressStrategy) -> bool:
    return layout.version == 2 and strategy.enable and strategy.pod_cgroups is not None


def _pods_below(
    layout: Layout, places: Places, pods: Iterable[Pod], strategy: SuppressStrategy
) -> Iterator[tuple[Pod, Knob]]:
    """Whatever they are labelled: a pod without requests is there as well."""
    for pod in pods if _wanted(layout, strategy) else ():
        place = places.pods.get(pod.uid)
        if place is not None and place.path.startswith(f"{layout.best_effort}/") and not pod.terminal:
            yield pod, cgroups_knob(place.path)
