"""Whole CPUs of online pods: containers of an LSE or LSR pod run on the CPUs that the scheduler gave the pod.

CPUs of which one is offline, or barred from pods, are not given in part: the pod's containers stay where they are. Of
CPUs that another pod has the rest is given: the kubelet's CPU manager knows nothing of ours and gives to a Guaranteed
pod what it takes for free, and that pod keeps it. No container runs on CPUs of another pod, and the node says why.
Source: Koordinator pkg/koordlet/runtimehooks/hooks/cpuset; what differs is in docs/adr/0041.
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
from model.topology import PodCpus, Processor, format_cpus, parse_cpus

_OWN = (QoSClass.LSE, QoSClass.LSR)


class OwnCpuMemory(msgspec.Struct, frozen=True):
    """By uid, the CPU list that a running LSE or LSR pod had when its status could last be read."""

    lists: Mapping[str, str] = {}


class _Claim(msgspec.Struct, frozen=True):
    """A pod, the CPUs it was given, why it cannot have them (empty where it can), and those it has all the same."""

    pod: Pod
    cpus: tuple[int, ...]
    problem: str = ""
    kept: tuple[int, ...] = ()


class _Machine(msgspec.Struct, frozen=True):
    """CPUs that are `online`, those that pods may run on (None where nothing says so), and by CPU whose it is."""

    online: set[int]
    allowed: set[int] | None
    owners: dict[int, str]

    def beside_owners(self, kernel: str) -> str:
        """A list for a pod that has no CPUs of its own: what it is, less those of others; without any left, all that
        are nobody's. Where there is none it stays."""
        everywhere = self.online if self.allowed is None else self.online & self.allowed
        had = set(parse_cpus(kernel)) or everywhere
        if had.isdisjoint(self.owners):
            return kernel
        free = had - self.owners.keys() or everywhere - self.owners.keys()
        return format_cpus(free) if free else kernel


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
    layout: Layout,
    observation: Observation,
    pods: Iterable[Pod],
    processors: tuple[Processor, ...],
    given_away: tuple[PodCpus, ...] = (),
) -> tuple[Limit, ...]:
    """A limit for each container whose list was read; where CPUs cannot be given it says why and where it runs.

    `given_away` by the kubelet to single pods; `processors` are all others. Nothing is judged while these are unknown.
    """
    listed = tuple(pods)
    online = {*(each.cpu for each in processors), *(cpu for each in given_away for cpu in each.cpus)}
    if not online:
        return ()
    machine = _Machine(online, _allowed(layout, observation), _by_kubelet(given_away, listed))
    # All of them first: one that cannot have its CPUs runs beside none of the others.
    claims = tuple(_claims(machine, listed, {each.uid: each.cpus for each in given_away}))
    found: list[Limit] = []
    for claim in claims:
        for knob in _containers(layout, observation.places, claim.pod):
            reading = observation.knobs.get(knob)
            if reading is None or isinstance(reading.kernel, Missing) or _is_unborn(knob, reading.kernel):
                continue
            cpus = format_cpus(claim.kept) if claim.kept else machine.beside_owners(str(reading.kernel))
            found.append(_limit(knob, claim, cpus, observation.at_seconds))
    return tuple(found)


def _by_kubelet(given_away: Iterable[PodCpus], pods: Iterable[Pod]) -> dict[int, str]:
    """Owners by CPU, less pods that run where the scheduler put them instead."""
    listed = {pod.cgroup_uid or pod.uid: pod for pod in pods}
    alone = ((each, listed.get(each.uid)) for each in given_away)
    return {
        cpu: f"pod {pod.key if pod else each.uid}'s, by the kubelet"
        for each, pod in alone
        if pod is None or not _is_own(pod)
        for cpu in each.cpus
    }


def _claims(machine: _Machine, pods: Iterable[Pod], kubelets: Mapping[str, tuple[int, ...]]) -> Iterator[_Claim]:
    """Whoever came first keeps a CPU that two were given; what each keeps is entered among the owners."""
    own = sorted((pod for pod in pods if _is_own(pod)), key=lambda pod: (pod.status.scheduled_seconds, pod.uid))
    for pod in own:
        cpus = parse_cpus(pod.colocation.cpuset)
        problem = _absent(cpus, machine)
        kept: tuple[int, ...] = ()
        if not problem:
            problem = _double(cpus, machine)
            # With none left it has those that the kubelet gave it, if it did.
            wishes = (cpus, kubelets.get(pod.cgroup_uid or pod.uid, ()))
            left = (tuple(cpu for cpu in wish if cpu not in machine.owners) for wish in wishes)
            kept = next(filter(None, left), ())
        machine.owners.update(dict.fromkeys(kept, f"pod {pod.key}'s"))
        yield _Claim(pod, cpus, problem, kept)


def _absent(cpus: tuple[int, ...], machine: _Machine) -> str:
    if absent := [cpu for cpu in cpus if cpu not in machine.online]:
        return f"CPU {format_cpus(absent)} is offline, or not in this machine"
    if machine.allowed is not None and (barred := [cpu for cpu in cpus if cpu not in machine.allowed]):
        return f"no pod may run on CPU {format_cpus(barred)} (cpuset of kubepods)"
    return ""


def _double(cpus: tuple[int, ...], machine: _Machine) -> str:
    double = [cpu for cpu in cpus if cpu in machine.owners]
    return f"CPU {format_cpus(double)} is {machine.owners[double[0]]}" if double else ""


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


def _limit(knob: Knob, claim: _Claim, cpus: str, now: float) -> Limit:
    reason = Reason.CPUS_NOT_GIVEN if claim.problem else Reason.CPUS_GIVEN
    terms = TermSum().add("given by the scheduler", len(claim.cpus))
    on = ""
    if claim.problem:
        terms.become("left to it" if claim.kept else "beside those of others", len(parse_cpus(cpus)))
        on = f"; {claim.problem}; it runs on {cpus or 'all'}"
    detail = f"pod {claim.pod.key}: CPUs {format_cpus(claim.cpus)}{on}"
    decision = Decision(knob.subject, knob.file, terms.value, Unit.CPUS, reason, terms.terms, "", now, detail)
    return Limit(knob, cpus, decision)
