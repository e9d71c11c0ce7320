"""Whole CPUs of online pods: containers of an LSE or LSR pod run on the CPUs that the scheduler gave the pod.

CPUs that cannot be given as a whole (one is offline, no pod may run on it, another pod has it) are not given in part:
the pod's containers stay where they are, and the node says why. Source: Koordinator
pkg/koordlet/runtimehooks/hooks/cpuset; what differs is in docs/adr/0041.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import cpuset_knob, is_v1_cpuset
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Observation, Places, Value
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.qos import QoSClass
from model.reason import Reason
from model.topology import Processor, format_cpus, parse_cpus

_OWN = (QoSClass.LSE, QoSClass.LSR)


class OwnCpuMemory(msgspec.Struct, frozen=True):
    """By uid, the CPU list that a running LSE or LSR pod had when its status could last be read."""

    lists: Mapping[str, str] = {}


class _Claim(msgspec.Struct, frozen=True):
    """A pod, the CPUs it was given, and why it cannot have them; empty where it can."""

    pod: Pod
    cpus: tuple[int, ...]
    problem: str = ""


def with_known_cpus(memory: OwnCpuMemory, pods: tuple[Pod, ...] | None) -> tuple[OwnCpuMemory, tuple[Pod, ...] | None]:
    """The pods as they are known: what an LSE or LSR pod had stays its own while it runs, whatever its status says.

    CPUs are not lent because a word about them is lost. None, while pods are not listed, forgets nothing.
    """
    if pods is None:
        return memory, None
    found, lists, changed = [], dict[str, str](), False
    for pod in pods:
        if pod.colocation.qos_label in _OWN and not pod.terminal:
            known = pod.colocation.cpuset or memory.lists.get(pod.uid, "")
            if known:
                lists[pod.uid] = known
            if known != pod.colocation.cpuset:
                changed = True
                pod = replace(pod, colocation=replace(pod.colocation, cpuset=known))
        found.append(pod)
    # The same tuple where it says the same: what is remembered of these pods is told by that.
    return (memory if lists == memory.lists else OwnCpuMemory(lists)), tuple(found) if changed else pods


def own_cpus_to_read(layout: Layout, places: Places, pods: Iterable[Pod]) -> Iterator[Knob]:
    """The lists of all their containers, and that of kubepods; nothing where no pod has CPUs of its own."""
    knobs = [knob for pod in pods if _is_own(pod) for knob in _containers(layout, places, pod)]
    if knobs:
        yield cpuset_knob(layout, layout.root)
        yield from knobs


def own_cpus(
    layout: Layout, observation: Observation, pods: Iterable[Pod], processors: tuple[Processor, ...]
) -> tuple[Limit, ...]:
    """A limit for each container whose list was read; where CPUs cannot be given it says why and changes nothing."""
    found: list[Limit] = []
    for claim in _claims(layout, observation, pods, processors):
        for knob in _containers(layout, observation.places, claim.pod):
            reading = observation.knobs.get(knob)
            if reading is None or isinstance(reading.kernel, Missing) or _is_unborn(knob, reading.kernel):
                continue
            held = parse_cpus(str(reading.kernel)) if claim.problem else claim.cpus
            found.append(_limit(knob, claim, held, observation.at_seconds))
    return tuple(found)


def _claims(
    layout: Layout, observation: Observation, pods: Iterable[Pod], processors: tuple[Processor, ...]
) -> Iterator[_Claim]:
    """Whoever came first keeps a CPU that two were given; nothing is judged while the machine's CPUs are unknown."""
    online, allowed = {processor.cpu for processor in processors}, _allowed(layout, observation)
    taken: dict[int, str] = {}
    own = sorted((pod for pod in pods if _is_own(pod)), key=lambda pod: (pod.status.scheduled_seconds, pod.uid))
    for pod in own if online else ():
        cpus = parse_cpus(pod.colocation.cpuset)
        problem = _problem(cpus, online, allowed, taken)
        if not problem:
            taken.update(dict.fromkeys(cpus, pod.key))
        yield _Claim(pod, cpus, problem)


def _problem(cpus: tuple[int, ...], online: set[int], allowed: set[int] | None, taken: Mapping[int, str]) -> str:
    if absent := [cpu for cpu in cpus if cpu not in online]:
        return f"CPU {format_cpus(absent)} is offline, or not in this machine"
    if allowed is not None and (barred := [cpu for cpu in cpus if cpu not in allowed]):
        return f"no pod may run on CPU {format_cpus(barred)} (cpuset of kubepods)"
    double = [cpu for cpu in cpus if cpu in taken]
    return f"CPU {format_cpus(double)} is pod {taken[double[0]]}'s" if double else ""


def _allowed(layout: Layout, observation: Observation) -> set[int] | None:
    """CPUs that pods may run on at all; None where nothing says so."""
    reading = observation.knobs.get(cpuset_knob(layout, layout.root))
    text = "" if reading is None or isinstance(reading.kernel, Missing) else str(reading.kernel)
    return set(parse_cpus(text)) if text else None


def _is_own(pod: Pod) -> bool:
    return pod.colocation.qos_label in _OWN and bool(pod.colocation.cpuset) and not pod.terminal


def _containers(layout: Layout, places: Places, pod: Pod) -> Iterator[Knob]:
    """Below the best-effort root its own list holds for all."""
    place = places.pods.get(pod.uid)
    if place is not None and not place.path.startswith(f"{layout.best_effort}/"):
        yield from (cpuset_knob(layout, path) for path in place.containers.values())


def _is_unborn(knob: Knob, kernel: Value) -> bool:
    """A v1 list is empty until the runtime fills it: nobody could give that back once processes are there."""
    return is_v1_cpuset(knob) and kernel == ""


def _limit(knob: Knob, claim: _Claim, held: tuple[int, ...], now: float) -> Limit:
    reason = Reason.CPUS_NOT_GIVEN if claim.problem else Reason.CPUS_GIVEN
    terms = TermSum().add("given by the scheduler", len(claim.cpus))
    if claim.problem:
        terms.become("as they were", len(held))
    detail = f"pod {claim.pod.key}: CPUs {format_cpus(claim.cpus)}" + (f"; {claim.problem}" if claim.problem else "")
    decision = Decision(knob.subject, knob.file, terms.value, Unit.CPUS, reason, terms.terms, "", now, detail)
    return Limit(knob, format_cpus(held), decision)
