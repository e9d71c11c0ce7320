"""Which CPUs best effort gets: Koordinator's order, without its traps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.core.limit.allowance import NodeSize, by_pods
from agent.core.limit.cpu_selection import (
    CpuSituation,
    Pools,
    child_limit,
    cpu_ceiling,
    exclusive_cpus,
    kept_off_limit,
    picked,
    pools,
)
from agent.core.limit.ownership import Ownership
from agent.core.limit.stall_relief import Relief
from agent.core.limit.suppress import CpuCeiling, Situation
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import cpuset_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, Value
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, QoSClass
from model.reason import Reason
from model.strategy import SuppressPolicy, SuppressStrategy
from model.topology import Processor, parse_cpus
from tests.pods import with_fields

LAYOUT = Layout("/kubepods")
ROOT = cpuset_knob(LAYOUT, LAYOUT.best_effort)


def machine(cpus: int, *, sockets: int = 1, threads: int = 1) -> tuple[Processor, ...]:
    """Threads of a core are `cpus / threads` apart, sockets one after the other, as on most machines."""
    cores = cpus // threads
    each = cores // sockets
    return tuple(Processor(c, c % cores, c % cores // each, c % cores // each) for c in range(cpus))


def pinned(build: Any, name: str, qos: QoSClass, cpuset: str) -> Pod:
    pod: Pod = build.pod(name, qos=qos)
    return with_fields(pod, cpuset=cpuset)


PICKED: dict[str, tuple[tuple[Processor, ...], int, list[int]]] = {
    "single threads in order": (machine(4), 2, [0, 1]),
    "whole cores": (machine(8, threads=2), 4, [0, 1, 4, 5]),
    "an odd one out": (machine(8, threads=2), 3, [0, 1, 4]),
    "in turn from each socket": (machine(8, sockets=2, threads=2), 4, [0, 2, 4, 6]),
    "the last one from the next socket": (machine(8, sockets=2, threads=2), 3, [0, 2, 4]),
    "a single one": (machine(8, sockets=2, threads=2), 1, [0]),
    "the largest socket first": (machine(8, sockets=2, threads=2)[1:], 2, [2, 6]),
    "cores that are half taken come last": (machine(8, threads=2)[2:], 6, [2, 3, 4, 5, 6, 7]),
    "no whole cores left": (machine(8, sockets=2, threads=2)[:4], 3, [0, 1, 2]),
    "more than there are": (machine(4), 9, [0, 1, 2, 3]),
    "four threads a core": (machine(8, threads=4), 5, [0, 1, 2, 4, 6]),
    "none": (machine(4), 0, []),
}


@pytest.mark.parametrize(("processors", "count", "expected"), PICKED.values(), ids=PICKED.keys())
def test_picking(processors: tuple[Processor, ...], count: int, expected: list[int]) -> None:
    """Whole cores while two are wanted, in turn from each socket of a NUMA node."""
    assert list(picked(Pools(processors), count)) == expected


POOLS: dict[str, tuple[list[tuple[QoSClass, str]], tuple[int, ...], str, str]] = {
    # pods with CPUs of their own, kept free, shared, pinned
    "nobody has any": ([], (), "0-7", ""),
    "reserved and the system's": ([], (0, 1), "2-7", ""),
    "an LSE pod's are nobody else's": ([(QoSClass.LSE, "2-3")], (), "0-1,4-7", ""),
    "an LSR pod's may be shared": ([(QoSClass.LSR, "2-3")], (), "0-1,4-7", "2-3"),
    "both": ([(QoSClass.LSE, "2-3"), (QoSClass.LSR, "3-5")], (0,), "1,6-7", "4-5"),
    "a batch pod's are no pin": ([(QoSClass.BE, "2-3")], (), "0-7", ""),
    "CPUs the machine does not have": ([(QoSClass.LSR, "7-9")], (12,), "0-6", "7"),
}


@pytest.mark.parametrize(("own", "kept", "shared", "theirs"), POOLS.values(), ids=POOLS.keys())
def test_pools(build: Any, own: list[tuple[QoSClass, str]], kept: tuple[int, ...], shared: str, theirs: str) -> None:
    """What best effort may use at all."""
    found = pools(machine(8), kept, [pinned(build, f"p{i}", *pair) for i, pair in enumerate(own)])
    assert [p.cpu for p in found.shared] == list(parse_cpus(shared))
    assert [p.cpu for p in found.pinned] == list(parse_cpus(theirs))


@pytest.mark.parametrize(
    ("label", "shared", "theirs"),
    [
        (QoSClass.LSE, "0-1,4-7", ""),
        (QoSClass.LSR, "0-1,4-7", "2-3"),
        (QoSClass.LS, "0-7", ""),
        (QoSClass.BE, "0-7", ""),
    ],
)
def test_a_label_keeps_cpus_whatever_is_requested(build: Any, label: QoSClass, shared: str, theirs: str) -> None:
    """Of a pod that Kubernetes calls BestEffort, as Koordinator goes by the label."""
    pod = with_fields(pinned(build, "p", label, "2-3"), kubernetes_qos=KubernetesQoS.BEST_EFFORT)
    found = pools(machine(8), (), [pod])
    assert [p.cpu for p in found.shared] == list(parse_cpus(shared))
    assert [p.cpu for p in found.pinned] == list(parse_cpus(theirs))


SHARES: dict[str, tuple[int, int, int, int]] = {
    # shared, pinned, wanted, of the pinned ones
    "in proportion": (6, 2, 4, 1),
    "the nearest whole number": (5, 3, 3, 1),
    "half a CPU goes to the shared ones": (6, 2, 2, 0),
    "more than half does not": (4, 4, 3, 1),
    "few wanted, many pinned": (1, 7, 2, 2),
    "all": (3, 5, 8, 5),
    "pinned ones alone": (0, 4, 2, 2),
}


@pytest.mark.parametrize(("shared", "theirs", "count", "share"), SHARES.values(), ids=SHARES.keys())
def test_pinned_cpus_are_taken_in_proportion(shared: int, theirs: int, count: int, share: int) -> None:
    """And none is lost in rounding."""
    all_of_them = machine(shared + theirs)
    found = picked(Pools(all_of_them[:shared], all_of_them[shared:]), count)
    assert (len(found), sum(cpu >= shared for cpu in found)) == (count, share)


def test_nothing_may_be_used(build: Any) -> None:
    """One CPU that is not an LSE pod's; no division by zero."""
    none = pools(machine(4), (2, 3), [pinned(build, "p", QoSClass.LSE, "0-1")])
    assert none.usable == 0 and picked(none, 3) == (2,)
    assert picked(pools(machine(2), (), [pinned(build, "p", QoSClass.LSE, "0-1")]), 2) == (0,)


def decide(build: Any, kernel: Any, cpus: int = 8, **more: Any) -> tuple[Limit, CpuCeiling]:
    """65 % of 8 CPUs are 5200m; online use 1200m, system 500m → 3500m."""
    online, system = more.pop("online", 1200), more.pop("system", 500)
    usage = build.usage(pods={"uid-web": build.averages(online)}, unlisted_system=build.averages(system))
    usage = replace(usage, online=build.averages(online))
    fields = {key: more.pop(key) for key in ("size", "demand", "unknown", "relief") if key in more}
    strategy = SuppressStrategy(policy=SuppressPolicy.CPUSET, **more.pop("strategy", {}))
    flags = {key: more.pop(key) for key in ("braked", "unsettled") if key in more}
    known = {"size": NodeSize(cpus * 1000), "demand": by_pods(usage, (), ()), **fields}
    situation = Situation(
        strategy=strategy,
        ownership=Ownership(-1, **flags),
        at_seconds=100.0,
        window_full=more.pop("full", True),
        **known,
    )
    about = CpuSituation(
        situation,
        KnobReading(kernel, more.pop("ours", None)),
        more.pop("pools", pools(machine(cpus), (), ())),
        cpus,
        **more,
    )
    return cpu_ceiling(ROOT, about)


# 3500m → 4 CPUs
CASES: dict[str, tuple[Any, dict[str, Any], Value, Reason]] = {
    "narrowed at once": ("0-7", {}, "0-3", Reason.CPUS_NARROWED),
    "v2 says nothing for all": ("", {}, "0-3", Reason.CPUS_NARROWED),
    "held": ("0-3", {}, "0-3", Reason.CPUS_HELD),
    "others of the same count": ("4-7", {}, "0-3", Reason.CPUS_HELD),
    "widened by a tenth, rounded up": ("0-1", {}, "0-2", Reason.CPUS_WIDENED),
    "once a second": ("0-1", {"may_widen": False}, "0-1", Reason.CPUS_HELD),
    "not after a cut by the brake": ("0-1", {"braked": True}, "0-1", Reason.BRAKE),
    "not with settings unread": (
        "0-1",
        {"unsettled": Reason.CONFIGURATION_INVALID},
        "0-1",
        Reason.CONFIGURATION_INVALID,
    ),
    "not by a young agent": ("0-1", {"full": False}, "0-1", Reason.WINDOW_FILLING),
    "not while online pods wait": (
        "0-1",
        {"relief": Relief(9_000, Reason.ONLINE_SUFFERING)},
        "0-1",
        Reason.ONLINE_SUFFERING,
    ),
    "two at least on a large node": ("0-7", {"online": 9000}, "0-1", Reason.CPUS_NARROWED),
    "one at least on a small one": ("0-1", {"cpus": 2, "online": 900}, "0", Reason.CPUS_NARROWED),
    "a floor of its own": ("0-7", {"online": 9000, "strategy": {"min_pct": 30}}, "0-2", Reason.CPUS_NARROWED),
    "fewer may be used": ("0-7", {"pools": Pools(machine(8)[6:])}, "6-7", Reason.TOO_FEW_CPUS),
    "none may be used": ("0-7", {"pools": Pools(spare=(5,))}, "5", Reason.TOO_FEW_CPUS),
    "somebody loosened it": ("0-7", {"ours": "0-1"}, "0-2", Reason.CPUS_WIDENED),
    "no usage": ("2-3", {"demand": None}, "2-3", Reason.NODE_METRICS_MISSING),
    "no usage on v2, where nothing was written": ("", {"demand": None}, "", Reason.NODE_METRICS_MISSING),
    "pods unknown": ("2-3", {"demand": None, "unknown": Reason.PODS_UNKNOWN}, "2-3", Reason.PODS_UNKNOWN),
    "CPUs unknown": ("2-3", {"pools": None}, "2-3", Reason.CPUS_HELD),
    "unreadable": (Missing("/c", Absence.GONE, "no file"), {}, "", Reason.KNOB_UNREADABLE),
}


@pytest.mark.parametrize(("kernel", "more", "value", "reason"), CASES.values(), ids=CASES.keys())
def test_the_list(build: Any, kernel: Any, more: dict[str, Any], value: Value, reason: Reason) -> None:
    """The value is how many CPUs the list names."""
    limit, _ = decide(build, kernel, **more)
    assert (limit.value, limit.decision.reason) == (value, reason)
    assert limit.decision.value == len(parse_cpus(str(value)))


def test_terms_and_detail(build: Any, terms: Any) -> None:
    """CPUs in the terms, the allowance behind them in the detail."""
    found = decide(build, "0-1")[0].decision
    assert terms(found) == {"allowance, rounded up": 4, "growth limited to a step": -1}
    told = "+8000 capacity -2800 margin +0 host applications -500 system used -1200 online used"
    assert found.detail == f"allowance in milli-CPU: {told}"


def test_the_brake_defends_the_cpus_that_are_wanted(build: Any) -> None:
    """With the online use of now its quota is exactly so many CPUs; each milli-CPU more takes one away."""
    _, found = decide(build, "0-7")
    assert found.base_us - 120_000 == found.in_force_us == 400_000
    _, found = decide(build, "0-1")
    assert (found.base_us - 120_000, found.in_force_us) == (400_000, 300_000)


def test_below_the_root(build: Any) -> None:
    """The same list; a container with CPUs of its own keeps to what is left of them."""
    root, _ = decide(build, "0-7")
    knob = cpuset_knob(LAYOUT, "/kubepods/besteffort/podx")
    found = child_limit(knob, root)
    assert (found.value, found.decision.subject, found.inherits) == ("0-3", "cgroup/kubepods/besteffort/podx", ROOT)
    assert (child_limit(knob, root, (2, 3, 6)).value, child_limit(knob, root, (6, 7)).value) == ("2-3", "0-3")
    assert child_limit(knob, root, (2, 3, 6)).decision.value == 2


@given(
    cpus=st.integers(1, 40),
    threads=st.sampled_from((1, 2)),
    sockets=st.sampled_from((1, 2)),
    kept=st.sets(st.integers(0, 39)),
    own=st.sets(st.integers(0, 39)),
    theirs=st.sets(st.integers(0, 39)),
    count=st.integers(0, 50),
)
def test_never_what_is_excluded(
    build: Any,
    cpus: int,
    threads: int,
    sockets: int,
    kept: set[int],
    own: set[int],
    theirs: set[int],
    count: int,
) -> None:
    """As many as wanted, or all that may be used; distinct, of this machine, neither kept free nor an LSE pod's."""
    found = machine(cpus * threads * sockets, sockets=sockets, threads=threads)
    pods = [
        pinned(build, "e", QoSClass.LSE, ",".join(map(str, sorted(own)))),
        pinned(build, "r", QoSClass.LSR, ",".join(map(str, sorted(theirs)))),
    ]
    may = {p.cpu for p in found} - kept - own
    chosen = picked(pools(found, tuple(kept), pods), count)
    if may:
        assert len(chosen) == len(set(chosen)) == min(count, len(may)) and may.issuperset(chosen)
    else:
        assert len(chosen) == 1


KEPT_OFF: dict[str, tuple[Pools, str, str]] = {
    "all of the node before": (Pools(machine(4)[:2], machine(4)[2:3], (0,)), "0-3", "0-2"),
    "on v2 an empty list is all": (Pools(machine(4)[:2], (), (0,)), "", "0-1"),
    "less before": (Pools(machine(4)[:3], (), (0,)), "1-3", "1-2"),
    "nothing is left": (Pools(spare=(3,)), "0-3", "3"),
    "nothing of what was": (Pools(machine(4)[:2], (), (0,)), "2-3", "0"),
}


@pytest.mark.parametrize(("usable", "before", "expected"), KEPT_OFF.values(), ids=KEPT_OFF)
def test_kept_off(usable: Pools, before: str, expected: str) -> None:
    """Best effort never gets more than it had; the spare CPU where it would get none."""
    limit = kept_off_limit(ROOT, usable, before, 7.0)
    assert (limit.value, limit.decision.value) == (expected, len(parse_cpus(expected)))
    assert (limit.decision.reason, limit.decision.at_seconds) == (Reason.CPUS_KEPT_OFF, 7.0)


def test_exclusive_cpus(build: Any) -> None:
    """Those of LSE pods that have not ended."""
    ended = with_fields(pinned(build, "e", QoSClass.LSE, "5"), phase=PodPhase.FAILED)
    pods = (pinned(build, "a", QoSClass.LSE, "0-1"), pinned(build, "b", QoSClass.LSR, "2"), ended)
    assert exclusive_cpus(pods) == {0, 1}
