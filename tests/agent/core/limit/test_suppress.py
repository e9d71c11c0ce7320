"""The quota ceiling: cut at once, raised by steps, never over what somebody tighter wrote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limit.allowance import NodeSize, by_cgroups, by_pods
from agent.core.limit.ownership import Ownership
from agent.core.limit.stall_relief import CALM, Relief
from agent.core.limit.suppress import CpuCeiling, Situation, floor_us, quota_ceiling
from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.observation import Absence, Missing
from model.decision import Decision
from model.reason import Reason
from model.strategy import SuppressPolicy, SuppressStrategy

STRATEGY = SuppressStrategy(threshold_pct=95)
OFF = SuppressStrategy(enable=False)
UNREADABLE = Missing("/cpu.cfs_quota_us", Absence.UNREADABLE, "garbage")


def whole(build: Any, current: Any, **more: Any) -> CpuCeiling:
    """With pods as `by_pod` use is counted by them, as policy cfsQuota does."""
    known = ("foreign_cap", "loosened", "ours", "braked", "unsettled", "elapsed_seconds")
    standing = Ownership(current, **{"elapsed_seconds": 1.0, **{key: more.pop(key) for key in known if key in more}})
    fields = {
        key: more.pop(key) for key in ("strategy", "size", "relief", "released", "cpuset_in_force") if key in more
    }
    by_pod = more.pop("by_pod", None)
    usage = more["usage"] if "usage" in more else build.usage(**more)
    demand = usage and (by_cgroups(usage) if by_pod is None else by_pods(usage, by_pod, ()))
    situation = Situation(
        **{"strategy": STRATEGY, "size": NodeSize(2000), **fields},
        ownership=standing,
        demand=demand,
        at_seconds=100.0,
        window_full=usage is not None and usage.live_window_full,
    )
    return quota_ceiling(build.knobs.quota, situation)


def ceiling(build: Any, current: Any, **more: Any) -> Decision:
    return whole(build, current, **more).decision


# 2 CPUs: 200,000 us a period, 5 % margin 10,000, system 100m = 10,000, online 400m = 40,000 → 140,000
CASES: dict[str, tuple[int, dict[str, Any], int, Reason]] = {
    "from unlimited the formula applies at once": (UNLIMITED, {}, 140_000, Reason.QUOTA_LOWERED),
    "lowering is at once": (190_000, {}, 140_000, Reason.QUOTA_LOWERED),
    "less than 5 % lower is not worth a write": (149_900, {}, 149_900, Reason.BELOW_DEADBAND),
    "exactly 5 % lower is": (150_000, {}, 140_000, Reason.QUOTA_LOWERED),
    "raising goes by a tenth of the node": (100_000, {}, 120_000, Reason.QUOTA_RAISED),
    "a decision half a second later takes half a step": (
        100_000,
        {"elapsed_seconds": 0.5},
        110_000,
        Reason.QUOTA_RAISED,
    ),
    "a late decision takes one step": (20_000, {"elapsed_seconds": 3.0}, 40_000, Reason.QUOTA_RAISED),
    "at the same moment nothing is raised": (100_000, {"elapsed_seconds": 0.0}, 100_000, Reason.BELOW_DEADBAND),
    "another clock raises nothing": (100_000, {"elapsed_seconds": -50.0}, 100_000, Reason.BELOW_DEADBAND),
    "lowering takes no time": (190_000, {"elapsed_seconds": 0.0}, 140_000, Reason.QUOTA_LOWERED),
    "the last step ends at the formula": (130_000, {}, 140_000, Reason.QUOTA_RAISED),
    "less than 1 % higher is not worth a write": (138_100, {}, 138_100, Reason.BELOW_DEADBAND),
    "after a brake cut nothing is raised": (100_000, {"braked": True}, 100_000, Reason.BRAKE),
    "before the live window is full nothing is raised": (
        100_000,
        {"live_seconds": 5.0},
        100_000,
        Reason.WINDOW_FILLING,
    ),
    "with settings unread nothing is raised": (
        100_000,
        {"unsettled": Reason.CONFIGURATION_INVALID},
        100_000,
        Reason.CONFIGURATION_INVALID,
    ),
    "with settings deleted nothing is raised": (
        100_000,
        {"unsettled": Reason.SETTINGS_DELETED},
        100_000,
        Reason.SETTINGS_DELETED,
    ),
    "with settings unread it is lowered": (
        190_000,
        {"unsettled": Reason.CONFIGURATION_INVALID},
        140_000,
        Reason.QUOTA_LOWERED,
    ),
    "reserved counts where it is larger": (UNLIMITED, {"size": NodeSize(2000, 300)}, 120_000, Reason.QUOTA_LOWERED),
    "a young agent lowers all the same": (190_000, {"live_seconds": 1.0}, 140_000, Reason.QUOTA_LOWERED),
    "a tighter foreign value is respected": (120_000, {"foreign_cap": 120_000}, 120_000, Reason.FOREIGN_WRITER_TIGHTER),
    "we may go below a foreign value": (190_000, {"foreign_cap": 150_000}, 140_000, Reason.QUOTA_LOWERED),
    "a loosened value is put back": (140_000, {"loosened": True}, 140_000, Reason.FOREIGN_WRITER_LOOSENED),
    "online pods wait: half of best effort's use": (
        140_000,
        {"relief": Relief(10_000, Reason.ONLINE_SUFFERING)},
        10_000,
        Reason.ONLINE_SUFFERING,
    ),
    "while they wait nothing is raised": (
        9_000,
        {"relief": Relief(10_000, Reason.ONLINE_SUFFERING)},
        9_000,
        Reason.ONLINE_SUFFERING,
    ),
    "nor until they recovered": (
        50_000,
        {"relief": Relief(80_000, Reason.ONLINE_RECOVERING)},
        50_000,
        Reason.ONLINE_RECOVERING,
    ),
    "a cut that would be above the formula changes nothing": (
        190_000,
        {"relief": Relief(150_000, Reason.ONLINE_SUFFERING)},
        140_000,
        Reason.QUOTA_LOWERED,
    ),
    "a cut that does not help is taken back by steps": (
        10_000,
        {"relief": Relief(disregarded="web waits")},
        30_000,
        Reason.CUT_DOES_NOT_HELP,
    ),
    "suffering and a tighter foreign value": (
        60_000,
        {"relief": Relief(10_000, Reason.ONLINE_SUFFERING), "foreign_cap": 60_000},
        10_000,
        Reason.ONLINE_SUFFERING,
    ),
}


@pytest.mark.parametrize(("current", "more", "expected", "reason"), CASES.values(), ids=CASES.keys())
def test_ceiling(build: Any, current: int, more: dict[str, Any], expected: int, reason: Reason) -> None:
    """One decision a case, worked by hand."""
    found = ceiling(build, current, **more)
    assert (found.value, found.reason) == (expected, reason)


def test_terms_name_every_part(build: Any, terms: Any) -> None:
    """What kubectl-minded people see with `sublet explain limit`."""
    assert terms(ceiling(build, UNLIMITED)) == {
        "capacity": 200_000,
        "margin": -10_000,
        "system used": -10_000,
        "online used": -40_000,
    }
    assert terms(ceiling(build, 100_000))["growth limited to a step"] == -20_000


def test_the_default_threshold(build: Any, terms: Any) -> None:
    """1 % of the node stays free."""
    found = ceiling(build, UNLIMITED, strategy=SuppressStrategy())
    assert (found.value, terms(found)["margin"]) == (148_000, -2_000)


def test_raising_looks_at_the_live_window_too(build: Any) -> None:
    """One quiet second does not raise the ceiling: 10 s average 900m online leaves 90,000."""
    found = ceiling(build, 100_000, online=build.averages(400, 0, live=900))
    assert (found.value, found.reason) == (100_000, Reason.BELOW_DEADBAND)


def test_floor(build: Any, terms: Any) -> None:
    """Best effort always keeps 0.02 CPU, or cpuSuppressMinPercent of the node."""
    busy = build.averages(5000)
    assert ceiling(build, UNLIMITED, online=busy).value == 2000
    least = SuppressStrategy(min_pct=10)
    assert ceiling(build, UNLIMITED, online=busy, strategy=least).value == 20_000
    assert ceiling(build, 2500, online=busy).value == 2000


@pytest.mark.parametrize(
    ("change", "value", "reason"),
    [
        ({"usage": None}, 77_000, Reason.NODE_METRICS_MISSING),
        ({"size": None}, 77_000, Reason.NODE_METRICS_MISSING),
        ({"strategy": OFF, "ours": True}, UNLIMITED, Reason.SUPPRESSION_DISABLED),
        ({"strategy": OFF}, 77_000, Reason.SUPPRESSION_DISABLED),
        ({"strategy": OFF, "ours": True, "foreign_cap": 77_000}, 77_000, Reason.SUPPRESSION_DISABLED),
    ],
)
def test_without_facts_the_value_stays(build: Any, change: dict[str, Any], value: int, reason: Reason) -> None:
    """Not knowing never raises; switching off on purpose lifts our own value and nobody else's."""
    found = ceiling(build, 77_000, **change)
    assert (found.value, found.reason) == (value, reason)


def test_unreadable_knob_says_so(build: Any) -> None:
    """The file and the kernel's words are in the record."""
    found = ceiling(build, UNREADABLE)
    assert found.reason is Reason.KNOB_UNREADABLE and "garbage" in found.detail


@given(
    current=st.one_of(st.just(UNLIMITED), st.integers(1000, 400_000)),
    online=st.integers(0, 5000),
    more=st.integers(0, 3000),
    braked=st.booleans(),
)
def test_more_online_use_never_raises(build: Any, current: int, online: int, more: int, braked: bool) -> None:
    """Monotone in online use, at least the floor, and a step bounds every rise."""
    high = ceiling(build, current, online=build.averages(online), braked=braked).value
    low = ceiling(build, current, online=build.averages(online + more), braked=braked).value
    assert 1000 <= low <= high
    if current != UNLIMITED:
        assert high <= max(current, min(current + 20_000, 190_000))


# As Koordinator, by hand: 2 CPUs, 65 % = 130,000; pods of 400m that are not best effort, host application 50m, system 150m
# → 130,000 - 40,000 - 5,000 - 15,000 = 70,000
BY_PODS: dict[str, tuple[int, dict[str, Any], int, Reason]] = {
    "from unlimited the formula applies at once": (UNLIMITED, {}, 70_000, Reason.QUOTA_LOWERED),
    "grows by a tenth of the node": (30_000, {}, 50_000, Reason.QUOTA_RAISED),
    "the newest second alone decides how far": (60_000, {"busy_before": 900}, 70_000, Reason.QUOTA_RAISED),
    "less than 1 % is not worth a write": (71_900, {}, 71_900, Reason.BELOW_DEADBAND),
    "the floor is worth any write": (2_100, {"busy": 5000}, 2_000, Reason.QUOTA_LOWERED),
    "a threshold of its own": (UNLIMITED, {"pct": 50}, 40_000, Reason.QUOTA_LOWERED),
    "a young agent raises nothing here either": (30_000, {"live_seconds": 1.0}, 30_000, Reason.WINDOW_FILLING),
}


@pytest.mark.parametrize(("current", "more", "expected", "reason"), BY_PODS.values(), ids=BY_PODS.keys())
def test_cfs_quota(build: Any, current: int, more: dict[str, Any], expected: int, reason: Reason) -> None:
    """Koordinator's numbers; best effort's own pods and an online service's past do not count."""
    busy, before, pct = more.pop("busy", 400), more.pop("busy_before", None), more.pop("pct", None)
    web, job = build.pod("web"), build.batch("job")
    found = ceiling(
        build,
        current,
        by_pod=(web, job),
        strategy=SuppressStrategy(policy=SuppressPolicy.CFS_QUOTA, threshold_pct=pct),
        pods={web.uid: build.averages(busy, live=before), job.uid: build.averages(700)},
        host_applications={"exporter": build.averages(50)},
        unlisted_system=build.averages(150),
        **more,
    )
    assert (found.value, found.reason, found.policy) == (expected, reason, "cfsQuota")


def test_the_brake_of_cfs_quota_sees_cgroups(build: Any) -> None:
    """Its base makes up for what cgroup counters call online and the pod list does not: with the use of now it cuts
    to exactly the ceiling."""
    web = build.pod("web")
    quota = SuppressStrategy(policy=SuppressPolicy.CFS_QUOTA)
    pods = {web.uid: build.averages(300)}
    found = whole(build, UNLIMITED, by_pod=(web,), strategy=quota, pods=pods, online=build.averages(450))
    assert found.base_us - 45_000 == found.decision.value == 130_000 - 10_000 - 30_000


RELEASED: dict[str, tuple[int, dict[str, Any], int, Reason]] = {
    "a quota of ours is lifted": (60_000, {"ours": True}, UNLIMITED, Reason.KNOB_RELEASED),
    "to what it was": (60_000, {"ours": True, "released": 80_000}, 80_000, Reason.KNOB_RELEASED),
    "somebody else's stays": (60_000, {}, 60_000, Reason.KNOB_RELEASED),
    "so does a foreign cap": (60_000, {"ours": True, "foreign_cap": 60_000}, 60_000, Reason.KNOB_RELEASED),
    "the brake's cut stands for its rest": (60_000, {"ours": True, "braked": True}, 60_000, Reason.BRAKE),
    "it stands until the list is in force": (
        60_000,
        {"ours": True, "cpuset_in_force": False},
        60_000,
        Reason.CPUS_HELD,
    ),
    "and while that cannot be told": (
        60_000,
        {"ours": True, "cpuset_in_force": False, "usage": None},
        60_000,
        Reason.NODE_METRICS_MISSING,
    ),
    "online pods wait": (
        UNLIMITED,
        {"relief": Relief(10_000, Reason.ONLINE_SUFFERING)},
        10_000,
        Reason.ONLINE_SUFFERING,
    ),
    "a lower value is not raised meanwhile": (
        5_000,
        {"ours": True, "relief": Relief(10_000, Reason.ONLINE_RECOVERING)},
        5_000,
        Reason.ONLINE_RECOVERING,
    ),
}


@pytest.mark.parametrize(("current", "more", "expected", "reason"), RELEASED.values(), ids=RELEASED.keys())
def test_quota_beside_cpu_lists(build: Any, current: int, more: dict[str, Any], expected: int, reason: Reason) -> None:
    """With policy cpuset the quota is for emergencies."""
    found = ceiling(
        build, current, strategy=SuppressStrategy(policy=SuppressPolicy.CPUSET), **{"cpuset_in_force": True, **more}
    )
    assert (found.value, found.reason) == (expected, reason)


def test_what_is_disregarded_is_said(build: Any) -> None:
    """As long as it lasts, whatever the ceiling does."""
    assert ceiling(build, 140_000, relief=Relief(disregarded="web waits")).detail == "web waits"


@given(
    current=st.one_of(st.just(UNLIMITED), st.integers(1000, 400_000)),
    online=st.integers(0, 3000),
    cap=st.integers(2000, 300_000),
    min_pct=st.one_of(st.none(), st.integers(0, 100)),
)
def test_relief_never_raises(build: Any, current: int, online: int, cap: int, min_pct: int | None) -> None:
    """With a cut for waiting the ceiling is no higher than without, and never above what it was but for the floor."""
    strategy = SuppressStrategy(min_pct=min_pct)
    floor = floor_us(NodeSize(2000), strategy)
    cap = max(cap, floor)
    more = {"online": build.averages(online), "strategy": strategy}
    plain = ceiling(build, current, relief=CALM, **more).value
    relieved = ceiling(build, current, relief=Relief(cap, Reason.ONLINE_SUFFERING), **more).value
    assert relieved <= plain
    assert current == UNLIMITED or relieved <= max(current, floor)


STANDING: dict[str, tuple[int, dict[str, Any], str]] = {
    "a quota that stands": (60_000, {}, "held"),
    "the brake's cut": (60_000, {"ours": True, "braked": True}, "held"),
    "no quota": (UNLIMITED, {}, "unlimited"),
    "a quota of ours that is lifted": (60_000, {"ours": True}, "unlimited"),
    "one that is lifted to what it was": (60_000, {"ours": True, "released": 80_000}, "held"),
}


@pytest.mark.parametrize(("current", "more", "term"), STANDING.values(), ids=STANDING.keys())
def test_what_is_not_computed_is_one_term(build: Any, current: int, more: dict[str, Any], term: str) -> None:
    """Named by whether there is a quota."""
    found = ceiling(
        build, current, strategy=SuppressStrategy(policy=SuppressPolicy.CPUSET), **{"cpuset_in_force": True, **more}
    )
    assert [(each.name, each.value) for each in found.terms] == [(term, found.value)]
