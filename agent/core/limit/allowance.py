"""CPU allowance: how much best effort may use before any step, hold or cap.

    allowance = capacity x threshold - online use - host applications - max(system use, reserved)

Source: Koordinator pkg/koordlet/qosmanager/helpers/calculator.go. Policy `adaptive` counts by cgroups, so that it needs
no pod list; `cfsQuota` and `cpuset` count by pods, as Koordinator does.

A quota that best effort meets costs the online pods latency: each time it is let go on, it runs before them once. So
with a pod list, and without a threshold of its own, `adaptive` counts online use only beyond requests, which are what
weights give at any time, and leaves no margin (docs/adr/0047).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.observe.knobs import PERIOD_US
from agent.core.observe.usage import NodeUsage
from agent.core.observe.windows import Averages
from model.decision import TermSum
from model.node import Node
from model.pod.pod import Pod
from model.qos import KubernetesQoS, QoSClass
from model.resources import CPU
from model.strategy import HostApplication

US_PER_MILLI = PERIOD_US // 1000
"""Quota per period that one milli-CPU is."""
MILLI = 1
"""Terms in milli-CPU instead."""
COVERED_PCT = 105
"""Threshold where requests cover online use: what jitters from second to second shall not make best effort meet it."""


class NodeSize(msgspec.Struct, frozen=True):
    """CPU of the node and how much of it is reserved, in milli-CPU."""

    capacity_millis: int
    reserved_millis: int = 0

    @classmethod
    def of(cls, node: Node, annotated_millis: int = 0, raw_millis: int | None = None) -> NodeSize:
        """Reserved is what the kubelet keeps or what the Node's annotation does, whichever is more.

        Amplification raises allocatable above what the kubelet left over; `raw_millis` is that, None without it.
        """
        allocatable = node.allocatable[CPU] if raw_millis is None else min(node.allocatable[CPU], raw_millis)
        return cls(node.capacity[CPU], max(node.capacity[CPU] - allocatable, annotated_millis, 0))


class MeasuredLoad(msgspec.Struct, frozen=True):
    """CPU that best effort leaves alone, in milli-CPU, and how it was counted: what is used, and what is idle and for
    its own pod alone. `covered_millis` is online use within requests, which need not be left alone; None: all counts.
    """

    online_millis: int
    system_millis: int
    host_millis: int | None = None
    exclusive_idle_millis: int = 0
    covered_millis: int | None = None
    online_note: str = ""
    system_note: str = "node minus pods"


class Demand(msgspec.Struct, frozen=True):
    """`now` decides how far to lower, `calm` how far to raise.

    `apart_millis` is what the brake, which reads two cgroup counters, sees as online beyond `now`; `requested_millis`
    what online pods may use together before it cuts.
    """

    now: MeasuredLoad
    calm: MeasuredLoad
    apart_millis: int = 0
    requested_millis: int = 0

    def beside(self, exclusive_idle_millis: int) -> Demand:
        """The same where so much idle CPU is of use to its own pod alone."""
        now, calm = (
            msgspec.structs.replace(load, exclusive_idle_millis=exclusive_idle_millis) for load in (self.now, self.calm)
        )
        return msgspec.structs.replace(self, now=now, calm=calm)


def by_cgroups(usage: NodeUsage) -> Demand:
    """Online is every pod cgroup outside besteffort; raising wants the newest second and the live window to agree."""
    online, system = usage.online, usage.system
    return Demand(
        now=MeasuredLoad(online.last.cpu_millis, system.last.cpu_millis, online_note="newest second"),
        calm=MeasuredLoad(_larger(online), _larger(system), online_note="larger of newest second and 10 s"),
    )


def by_pods(usage: NodeUsage, pods: Iterable[Pod], applications: Iterable[HostApplication]) -> Demand:
    """Online is what listed pods outside the best-effort root use now; of an unlisted pod it is system use.

    Where a pod lives is the kubelet's word: a label BE on a pod that no ceiling holds takes nothing off.
    """
    batch = {pod.uid for pod in pods if pod.status.kubernetes_qos is KubernetesQoS.BEST_EFFORT}
    below = {app.name for app in applications if app.below_best_effort and app.qos == QoSClass.BE}
    online = sum(used.last.cpu_millis for uid, used in usage.pods.items() if uid not in batch)
    host = sum(used.last.cpu_millis for name, used in usage.host_applications.items() if name not in below)
    load = MeasuredLoad(
        online,
        usage.unlisted_system.last.cpu_millis,
        host,
        online_note="pods outside the best-effort root, newest second",
        system_note="node minus listed pods and host applications",
    )
    return Demand(load, load, usage.online.last.cpu_millis - online)


def within_requests(demand: Demand, usage: NodeUsage, pods: Iterable[Pod]) -> Demand:
    """The same where online use counts beyond requests alone; of pods that are not listed or not measured all of it."""
    asked = {
        pod.uid: (pod.spec.requests if pod.spec.certain is None else pod.spec.certain)[CPU]
        for pod in pods
        if pod.uid in usage.pods and pod.status.kubernetes_qos is not KubernetesQoS.BEST_EFFORT
    }
    last = {uid: usage.pods[uid].last.cpu_millis for uid in asked}
    unknown = max(demand.now.online_millis - sum(last.values()), 0)
    now = _covered(demand.now, last, asked, unknown)
    larger = {uid: _larger(usage.pods[uid]) for uid in asked}
    calm = _covered(demand.calm, larger, asked, max(demand.calm.online_millis - sum(larger.values()), unknown))
    return msgspec.structs.replace(demand, now=now, calm=calm, requested_millis=sum(asked.values()))


def _covered(load: MeasuredLoad, used: Mapping[str, int], asked: Mapping[str, int], unknown: int) -> MeasuredLoad:
    beyond = sum(max(millis - asked[uid], 0) for uid, millis in used.items())
    return msgspec.structs.replace(load, covered_millis=max(load.online_millis - beyond - unknown, 0))


def base(size: NodeSize, load: MeasuredLoad, threshold_pct: int, scale: int = US_PER_MILLI) -> TermSum:
    """The allowance before online use is subtracted, in units of `scale` to a milli-CPU."""
    full = size.capacity_millis * scale
    terms = TermSum().add("capacity", full, f"{size.capacity_millis}m")
    if load.covered_millis is None:
        terms.add("margin", full * threshold_pct // 100 - full, f"{100 - threshold_pct} % of capacity stays free")
    else:
        terms.add("margin", full * COVERED_PCT // 100 - full, "a ceiling that is met costs online pods latency")
    if load.exclusive_idle_millis:
        terms.add("exclusive CPU", -load.exclusive_idle_millis * scale, "idle, and for its own pod alone")
    if load.host_millis is not None:
        terms.add("host applications", -load.host_millis * scale, "those that are not best effort")
    if load.system_millis >= size.reserved_millis:
        return terms.add("system used", -load.system_millis * scale, load.system_note)
    return terms.add(
        "reserved",
        -size.reserved_millis * scale,
        "by kubelet, annotation or limits of kubepods; larger than system use",
    )


def allowance(size: NodeSize, load: MeasuredLoad, threshold_pct: int, scale: int = US_PER_MILLI) -> TermSum:
    """All of it, in units of `scale` to a milli-CPU; negative where online use needs more than there is."""
    terms = base(size, load, threshold_pct, scale).add("online used", -load.online_millis * scale, load.online_note)
    if load.covered_millis is not None:
        terms.add("within requests", load.covered_millis * scale, "of it: their weight gives them that at any time")
    return terms


def left_beside(size: NodeSize, load: MeasuredLoad) -> int | None:
    """Milli-CPU that are left for best effort while all this is used; None where its ceiling says so itself."""
    if load.covered_millis is None:
        return None
    return allowance(size, msgspec.structs.replace(load, covered_millis=None), 100, MILLI).value


def _larger(use: Averages) -> int:
    return max(use.last.cpu_millis, use.live.cpu_millis)
