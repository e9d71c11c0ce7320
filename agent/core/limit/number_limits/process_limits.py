"""Process limits: pids.max of the best-effort root and of each batch pod, so that a fork bomb stops itself alone.

    best effort = share % of what there may be, and no more than others leave, less a tenth that stays free for them
    a batch pod = share % of that share, and no more than the kubelet allows it (podPidsLimit)

What there may be is the smaller of kernel.pid_max and kernel.threads-max, and the limit of all pods together where they
have one. Of pid_max a process may keep three numbers: its own, and those of its session and its process group, whose
leaders have ended; so best effort has no more processes than with three each leave others theirs.

A limit below what runs already ends nobody: the kernel refuses to make more. Source: kernel
Documentation/admin-guide/cgroup-v2.rst (PID), cgroup-v1/pids.rst; Kubernetes pkg/kubelet/stats/pidlimit.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.core.limit.ownership import no_looser_than_before
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import UNLIMITED, pids_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Observation, PidCounts, Places
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.reason import Reason
from model.strategy import SuppressStrategy

_FREE_PARTS = 10
"""One part of these stays free for whoever is not best effort."""
_FLOOR_PARTS = 32
"""Best effort may have one part of these however many others there are: its pods must start and end."""
_NUMBERS_EACH = 3
"""Source: kernel/pid.c, __change_pid: a number is free once nobody has it as process, group or session."""
_STEADY_PARTS = 16
"""A value that would change by less than one part of these stays: every process that others start moves it."""


class _Whole(msgspec.Struct, frozen=True):
    """So many there may be, so many of them are not best effort's, whose limit that is, how many a process takes."""

    most: int
    others: int
    of: str
    each: int = 1

    def share(self, strategy: SuppressStrategy) -> int:
        """Of best effort, in processes, whatever others have."""
        share = self.most * (strategy.pids_pct or 0) // 100
        return share if self.each == 1 else min(share, self.left(0))

    def left(self, others: int) -> int:
        """By so many others, in processes."""
        return (self.most - others - self.most // _FREE_PARTS) // self.each


def pods_pids_to_read(layout: Layout, places: Places, pods: Iterable[Pod]) -> tuple[Knob, ...]:
    """The files of batch pods that `pods_pids` speaks of."""
    return tuple(knob for _, knob in _batch_pods(layout, places, pods))


def root_pids(knob: Knob, reading: KnobReading, observation: Observation, strategy: SuppressStrategy) -> Limit | None:
    """What the best-effort root may have; None where there is nothing to write. `ControllerAbsent` is no error."""
    kernel, now = reading.kernel, observation.at_seconds
    if isinstance(kernel, Missing):
        gone = kernel.absence is Absence.GONE
        reason = Reason.CONTROLLER_ABSENT if gone else Reason.KNOB_UNREADABLE
        terms = TermSum().add("unlimited", UNLIMITED)
        return _limit(knob, terms, reason, now, "" if gone else f"{kernel.path}: {kernel.detail}")
    if not _wanted(strategy):
        return None
    if observation.pids is None or not isinstance(kernel, int):
        held = TermSum().add("held" if kernel != UNLIMITED else "unlimited", _number(kernel))
        unread = "how many processes there are and may be could not be read"
        return _limit(knob, held, Reason.NODE_METRICS_MISSING, now, f"{unread}; the current value stays")
    whole = min(_wholes(observation.pids), key=lambda each: min(each.share(strategy), each.left(each.others)))
    share = whole.share(strategy)
    terms = TermSum().add("processes and threads", whole.most, whole.of)
    terms.at_most("best effort's share", share, f"{strategy.pids_pct} %")
    terms.at_most("others' need", whole.left(whole.others), f"{whole.others} are theirs")
    floor = max(min(whole.most // _FLOOR_PARTS, share), 1)
    terms.at_least("floor", floor, f"1/{_FLOOR_PARTS} of them at most, whatever others have")
    no_looser_than_before(terms, reading, "the kubelet's")
    if kernel == reading.last_written and abs(terms.value - kernel) * _STEADY_PARTS < terms.value:
        terms.become(f"held: change below 1/{_STEADY_PARTS}", kernel)
        return _limit(knob, terms, Reason.BELOW_DEADBAND, now)
    return _limit(knob, terms, Reason.PIDS_SHARE, now)


def pods_pids(
    layout: Layout, observation: Observation, pods: Iterable[Pod], strategy: SuppressStrategy
) -> dict[Knob, Limit]:
    """What each batch pod below the best-effort root may have, of those whose file was read."""
    found: dict[Knob, Limit] = {}
    for pod, knob in _batch_pods(layout, observation.places, pods):
        reading = observation.knobs.get(knob)
        limit = _of_pod(pod, knob, reading, observation, strategy) if reading else None
        if limit is not None:
            found[knob] = limit
    return found


def is_absent(limit: Limit | None) -> bool:
    """The root has no such file: no pod has one either."""
    return limit is not None and limit.decision.reason is Reason.CONTROLLER_ABSENT


def holds_pods_pids(strategy: SuppressStrategy) -> bool:
    """Batch pods have limits of their own."""
    return _wanted(strategy) and strategy.pod_pids_pct is not None


def _of_pod(
    pod: Pod, knob: Knob, reading: KnobReading, observation: Observation, strategy: SuppressStrategy
) -> Limit | None:
    detail = f"pod {pod.key}"
    if observation.pids is None or strategy.pod_pids_pct is None or not _wanted(strategy):
        return None
    # Of the share alone: what others need now must not move the limits of all pods.
    share = min(whole.share(strategy) for whole in _wholes(observation.pids))
    terms = TermSum().add("best effort's share", share, f"at most {strategy.pids_pct} % of what there may be")
    terms.at_most("a pod's share", max(share * strategy.pod_pids_pct // 100, 1), f"{strategy.pod_pids_pct} %")
    no_looser_than_before(terms, reading, "the kubelet's")
    return _limit(knob, terms, Reason.PIDS_SHARE, observation.at_seconds, detail)


def _batch_pods(layout: Layout, places: Places, pods: Iterable[Pod]) -> Iterable[tuple[Pod, Knob]]:
    """Those labelled BE or of band mid that live below the best-effort root; of others nothing is touched."""
    for pod in pods:
        place = places.pods.get(pod.uid)
        below = place is not None and place.path.startswith(f"{layout.best_effort}/")
        if place is not None and below and pod.borrows and not pod.terminal:
            yield pod, pids_knob(layout, place.path)


def _wanted(strategy: SuppressStrategy) -> bool:
    return strategy.enable and strategy.pids_pct is not None


def _wholes(pids: PidCounts) -> tuple[_Whole, ...]:
    """The node, and all pods where they have a limit together. Best effort that cannot be counted counts as others'."""
    own = pids.best_effort or 0
    node = _Whole(pids.node_most, max(pids.node - own, 0), "the smaller of kernel.pid_max and kernel.threads-max")
    found = [node]
    if pids.numbers is not None:
        found.append(_Whole(pids.numbers, node.others, "kernel.pid_max, of which each may keep three", _NUMBERS_EACH))
    if pids.kubepods_most is not None:
        pods = max((pids.kubepods or 0) - own, 0)
        found.append(_Whole(pids.kubepods_most, pods, "all pods, which have a limit together"))
    return tuple(found)


def _number(kernel: object) -> int:
    return kernel if isinstance(kernel, int) else 0


def _limit(knob: Knob, terms: TermSum, reason: Reason, now: float, detail: str = "") -> Limit:
    decision = Decision(knob.subject, knob.file, terms.value, Unit.PIDS, reason, terms.terms, "", now, detail)
    return Limit(knob, terms.value, decision)
