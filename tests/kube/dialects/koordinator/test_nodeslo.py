"""NodeSLO: the switch, suppression, evictions and host applications, each by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kube.dialects.koordinator.nodeslo import (
    CgroupBase,
    CgroupPath,
    EvictionFields,
    EvictionPolicy,
    HostApplicationFields,
    HostApplicationSpec,
    OtherSections,
    SuppressFields,
    SuppressPolicyText,
    SwitchFields,
    host_application,
    slo_host_applications,
    slo_others,
    slo_threshold,
)
from kube.objects import Metadata, NodeSLO
from model.fault import ConfigurationFault
from model.qos import PriorityBand, QoSClass
from model.strategy import HostApplication


def slo(spec: Any) -> NodeSLO:
    return NodeSLO(Metadata(name="n"), spec)


READERS: dict[str, Callable[[NodeSLO | None], Any]] = {
    "switch": lambda source: slo_threshold(source, SwitchFields),
    "suppress": lambda source: slo_threshold(source, SuppressFields),
    "eviction": lambda source: slo_threshold(source, EvictionFields),
    "host applications": slo_host_applications,
    "others": slo_others,
}
SILENT = {
    "switch": SwitchFields(),
    "suppress": SuppressFields(),
    "eviction": EvictionFields(),
    "host applications": HostApplicationFields(),
    "others": OtherSections(),
}


def parts(spec: Any) -> dict[str, Any]:
    """What each reader makes of the same document; its fault as a text."""
    found = {}
    for name, reader in READERS.items():
        try:
            found[name] = reader(slo(spec))
        except ConfigurationFault as fault:
            found[name] = str(fault)
    return found


# What koord-manager renders with every section of the API filled in.
RENDERED: dict[str, Any] = {
    "resourceUsedThresholdWithBE": {
        "enable": True,
        "cpuSuppressThresholdPercent": 65,
        "cpuSuppressMinPercent": 10,
        "cpuSuppressPolicy": "cpuset",
        "memoryEvictThresholdPercent": 70,
        "cpuEvictPolicy": "evictByRealLimit",
    },
    "resourceQOSStrategy": {"lsrClass": {"cpuQOS": {"enable": False, "groupIdentity": 2}}, "cgroupRoot": {}},
    "cpuBurstStrategy": {"policy": "none", "cpuBurstPercent": 1000, "cfsQuotaBurstPeriodSeconds": -1},
    "systemStrategy": {"minFreeKbytesFactor": 100, "totalNetworkBandwidth": "0"},
    "extensions": {"anything": [1, 2]},
    "hostApplications": [
        {
            "name": "nginx",
            "priority": "koord-prod",
            "qos": "LS",
            "cgroupPath": {"base": "CgroupRoot", "parentDir": "host-latency-sensitive/", "relativePath": "nginx/"},
            "strategy": {},
        }
    ],
    "fieldOfTomorrow": 1,
}


def test_a_rendered_document() -> None:
    """All that is known is read; the rest is skipped."""
    path = CgroupPath(CgroupBase.ROOT, "host-latency-sensitive/", "nginx/")
    assert parts(RENDERED) == {
        "switch": SwitchFields(True),
        "suppress": SuppressFields(65, 10, SuppressPolicyText.CPUSET),
        "eviction": EvictionFields(70, cpu_limit_policy=EvictionPolicy.REAL_LIMIT),
        "host applications": HostApplicationFields(
            [HostApplicationSpec("nginx", PriorityBand.PROD, QoSClass.LS, path)]
        ),
        "others": OtherSections(RENDERED["resourceQOSStrategy"], RENDERED["systemStrategy"], RENDERED["extensions"]),
    }


EVICTIONS = {
    "memoryEvictThresholdPercent": 80,
    "memoryEvictLowerPercent": 75,
    "memoryAllocatableEvictThresholdPercent": 120,
    "memoryAllocatableEvictLowerPercent": 100,
    "cpuEvictBESatisfactionUpperPercent": 60,
    "cpuEvictBESatisfactionLowerPercent": 60,
    "cpuEvictBEUsageThresholdPercent": 85,
    "cpuEvictTimeWindowSeconds": 60,
    "cpuEvictThresholdPercent": 90,
    "cpuEvictLowerPercent": 85,
    "cpuAllocatableEvictThresholdPercent": 130,
    "cpuAllocatableEvictLowerPercent": 110,
    "cpuEvictPolicy": "evictByAllocatable",
    "evictEnabledPriorityThreshold": 5999,
    "allocatableEvictPriorityThreshold": 7999,
}


def test_every_word_on_evictions() -> None:
    """By the names of Koordinator's API, lower and upper each where it belongs."""
    found = slo_threshold(slo(threshold(**EVICTIONS)), EvictionFields)
    assert found == EvictionFields(
        80, 75, 120, 100, 60, 60, 85, 60, 90, 85, 130, 110, EvictionPolicy.ALLOCATABLE, 5999, 7999
    )
    assert found.cpu_satisfaction_lower_pct == found.cpu_satisfaction_upper_pct == 60


@pytest.mark.parametrize("spec", [None, {}, {"resourceUsedThresholdWithBE": None, "hostApplications": None}])
def test_an_empty_document_is_silent(spec: Any) -> None:
    """It sets nothing, so that what was stays."""
    assert parts(spec) == SILENT


def test_without_an_object_nothing_is_said() -> None:
    """As by an empty one."""
    assert {name: reader(None) for name, reader in READERS.items()} == SILENT


def threshold(**fields: Any) -> dict[str, Any]:
    return {"resourceUsedThresholdWithBE": fields}


def application(**fields: Any) -> dict[str, Any]:
    return {"hostApplications": [{"name": "a", **fields}]}


SECTION = "resourceUsedThresholdWithBE"


def wrong(field: str, value: Any, told: str = "") -> tuple[Any, str]:
    """A field of the section and the start of what is said of it."""
    return threshold(**{field: value}), f".{SECTION}.{field}: is {value!r}{told}"


def reversed_pair(lower: tuple[str, int], upper: tuple[str, int]) -> tuple[Any, str]:
    return threshold(**dict([lower, upper])), f".{SECTION}: is not valid (expected {lower[0]} below {upper[0]})"


MEMORY_PAIR = ("memoryEvictLowerPercent", 70), ("memoryEvictThresholdPercent", 70)
CPU_PAIR = ("cpuEvictLowerPercent", 91), ("cpuEvictThresholdPercent", 90)
REQUEST_PAIRS = [
    ((f"{of}AllocatableEvictLowerPercent", 100), (f"{of}AllocatableEvictThresholdPercent", 100))
    for of in ("memory", "cpu")
]
BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ("hello", ": is 'hello' (expected an object"),
    "a threshold above 100": (
        threshold(cpuSuppressThresholdPercent=150),
        f".{SECTION}.cpuSuppressThresholdPercent: is 150",
    ),
    "a threshold as text": (
        threshold(cpuSuppressThresholdPercent="65"),
        f".{SECTION}.cpuSuppressThresholdPercent: is '65'",
    ),
    "a floor of true": (threshold(cpuSuppressMinPercent=True), f".{SECTION}.cpuSuppressMinPercent: is True"),
    "an unknown policy": (
        threshold(cpuSuppressPolicy="turbo"),
        f".{SECTION}.cpuSuppressPolicy: is 'turbo' (write one of adaptive, cfsQuota, cpuset)",
    ),
    "memory above the node": wrong("memoryEvictThresholdPercent", 101, " (expected a whole number <= 100"),
    "memory below nothing": wrong("memoryEvictLowerPercent", -1, " (expected a whole number >= 0"),
    "CPU above the node": wrong("cpuEvictThresholdPercent", 101),
    "CPU's lower share as text": wrong("cpuEvictLowerPercent", "70"),
    "satisfied by more than all": wrong("cpuEvictBESatisfactionUpperPercent", 101, " (expected a whole number <= 100"),
    "satisfied by less than nothing": wrong("cpuEvictBESatisfactionLowerPercent", -1, " (expected a whole number >= 0"),
    "best effort's use": wrong("cpuEvictBEUsageThresholdPercent", 101),
    "no window": wrong("cpuEvictTimeWindowSeconds", 0, " (expected a whole number >= 1"),
    "a negative share of what is lent": wrong("cpuAllocatableEvictThresholdPercent", -1),
    "a share of memory lent": wrong("memoryAllocatableEvictLowerPercent", 1.5),
    "no number of a priority": wrong("evictEnabledPriorityThreshold", 1 << 31),
    "a priority of prod": wrong("allocatableEvictPriorityThreshold", 8000, " (expected a whole number <= 7999"),
    "an unknown limit": wrong("cpuEvictPolicy", "evictByLimit", " (write one of evictByRealLimit, evictByAllocatable)"),
    "memory's shares reversed": reversed_pair(*MEMORY_PAIR),
    "CPU's shares reversed": reversed_pair(*CPU_PAIR),
    "memory requests reversed": reversed_pair(*REQUEST_PAIRS[0]),
    "CPU requests reversed": reversed_pair(*REQUEST_PAIRS[1]),
    "a word for a switch": (threshold(enable="yes"), f".{SECTION}.enable: is 'yes' (expected true or false"),
    "a list for a section": ({SECTION: []}, f".{SECTION}: is a list"),
    "a section nothing acts on": ({"systemStrategy": "auto"}, ".systemStrategy: is 'auto' (expected an object"),
    "no list of applications": ({"hostApplications": {}}, ".hostApplications: is an object (expected a list"),
    "an application without a name": ({"hostApplications": [{}]}, ".hostApplications[0]: is not valid (Object missing"),
    "an empty name": (application(name=""), ".hostApplications[0].name: is ''"),
    "a name that is a path": (application(name="a/b"), ".hostApplications[0].name: is 'a/b'"),
    "a name that climbs": (application(name=".."), ".hostApplications[0]: is not valid (expected a name"),
    "one name twice": (
        {"hostApplications": [{"name": "a"}, {"name": "a"}]},
        ".hostApplications: is not valid (expected each application's name once)",
    ),
    "an unknown class": (
        application(qos="ls"),
        ".hostApplications[0].qos: is 'ls' (write one of LSE, LSR, LS, BE, SYSTEM)",
    ),
    "an unknown band": (
        application(priority="prod"),
        ".hostApplications[0].priority: is 'prod' (write one of koord-prod,",
    ),
    "an unknown base": (
        application(cgroupPath={"base": "Root", "relativePath": "x"}),
        ".hostApplications[0].cgroupPath.base: is 'Root' (write one of CgroupRoot, Kubepods,",
    ),
    "a path that climbs": (
        application(cgroupPath={"parentDir": "a/../.."}),
        ".hostApplications[0].cgroupPath: is not valid (expected a path without ..)",
    ),
    "the root itself": (
        application(cgroupPath={"base": "CgroupRoot", "parentDir": "/"}),
        ".hostApplications[0].cgroupPath: is not valid (expected a path below the root)",
    ),
    "a path with a line end": (
        application(cgroupPath={"parentDir": "a\nb"}),
        ".hostApplications[0].cgroupPath.parentDir: is",
    ),
}


@pytest.mark.parametrize(("spec", "told"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_document_names_the_field(spec: Any, told: str) -> None:
    """Object, field, value and fix in one line, whoever else reads the rest."""
    faults = {found for found in parts(spec).values() if isinstance(found, str)}
    assert [fault.startswith(f"NodeSLO n: spec{told}") for fault in faults] == [True]


# a fault of each part -> who cannot read the document
ALONE: dict[str, tuple[Any, str]] = {
    "switch": (threshold(enable="no", memoryEvictThresholdPercent=80), "switch"),
    "suppression": (threshold(enable=False, cpuSuppressThresholdPercent=101), "suppress"),
    "evictions": (threshold(enable=False, cpuEvictThresholdPercent=101), "eviction"),
    "host applications": ({**threshold(enable=False), "hostApplications": 3}, "host applications"),
    "a section nothing acts on": ({**threshold(enable=False), "systemStrategy": 3}, "others"),
}


@pytest.mark.parametrize(("spec", "reader"), ALONE.values(), ids=ALONE.keys())
def test_a_fault_holds_up_its_own_part_alone(spec: Any, reader: str) -> None:
    """All others are read, a switch to off among them."""
    found = parts(spec)
    assert [name for name, part in found.items() if isinstance(part, str)] == [reader]
    assert reader == "switch" or found["switch"] == SwitchFields(False)


SATISFACTION_OFF = [(61, 90), (50, 100), (50, 20), (0, 0), (100, 100)]


@pytest.mark.parametrize(("lower", "upper"), SATISFACTION_OFF)
def test_a_satisfaction_that_switches_its_rule_off_is_no_fault(lower: int, upper: int) -> None:
    """Koordinator's definition lets it in, and koordlet has no such rule then."""
    fields = {"cpuEvictBESatisfactionLowerPercent": lower, "cpuEvictBESatisfactionUpperPercent": upper}
    found = slo_threshold(slo(threshold(**fields)), EvictionFields)
    assert (found.cpu_satisfaction_lower_pct, found.cpu_satisfaction_upper_pct) == (lower, upper)


def spec(**fields: Any) -> HostApplicationSpec:
    return HostApplicationSpec(**{"name": "db", **fields})


def path(base: CgroupBase | None = None, parent: str | None = None, relative: str | None = "x") -> CgroupPath:
    return CgroupPath(base, parent, relative)


PATHS: dict[str, tuple[HostApplicationSpec, str, str]] = {
    "online by default": (spec(qos=QoSClass.LSE), "/kubepods", "/host-latency-sensitive/db"),
    "best effort by default": (spec(qos=QoSClass.BE), "/kubepods", "/host-best-effort/db"),
    "without a class": (spec(), "/kubepods", "/db"),
    "from the root": (spec(cgroup_path=path(CgroupBase.ROOT, "/a//b/", "./c/")), "/kubepods", "/a/b/c"),
    "without a base": (spec(cgroup_path=path(None, None, "c")), "/kubepods", "/c"),
    "from the pods' root": (spec(cgroup_path=path(CgroupBase.KUBEPODS)), "/kubepods", "/kubepods/x"),
    "burstable": (spec(cgroup_path=path(CgroupBase.BURSTABLE)), "/kubepods", "/kubepods/burstable/x"),
    "best effort, nested root": (
        spec(cgroup_path=path(CgroupBase.BEST_EFFORT)),
        "/lab/kubepods",
        "/lab/kubepods/besteffort/x",
    ),
    "systemd": (
        spec(cgroup_path=path(CgroupBase.BEST_EFFORT)),
        "/kubepods.slice",
        "/kubepods.slice/kubepods-besteffort.slice/x",
    ),
    "systemd, nested root": (
        spec(cgroup_path=path(CgroupBase.BURSTABLE)),
        "/kubelet.slice/kubelet-kubepods.slice",
        "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/x",
    ),
    "the whole of best effort": (
        spec(cgroup_path=path(CgroupBase.BEST_EFFORT, None, None)),
        "/kubepods",
        "/kubepods/besteffort",
    ),
}


@pytest.mark.parametrize(("source", "kubepods", "cgroup"), PATHS.values(), ids=PATHS.keys())
def test_where_a_host_application_lies(source: HostApplicationSpec, kubepods: str, cgroup: str) -> None:
    """As Koordinator joins them, below the pods' root of this node."""
    assert host_application(source, kubepods).cgroup == cgroup


CLASSES: dict[str, tuple[HostApplicationSpec, HostApplication]] = {
    "as written": (
        spec(qos=QoSClass.LS, priority=PriorityBand.MID),
        HostApplication("db", "/host-latency-sensitive/db", "LS", "koord-mid"),
    ),
    "no priority, online": (
        spec(qos=QoSClass.LS),
        HostApplication("db", "/host-latency-sensitive/db", "LS", "koord-prod"),
    ),
    "no priority, best effort": (
        spec(qos=QoSClass.BE),
        HostApplication("db", "/host-best-effort/db", "BE", "koord-batch"),
    ),
    "nothing at all": (spec(), HostApplication("db", "/db", "", "koord-prod")),
    "suppressed with the pods": (
        spec(qos=QoSClass.BE, cgroup_path=path(CgroupBase.BEST_EFFORT)),
        HostApplication("db", "/kubepods/besteffort/x", "BE", "koord-batch", below_best_effort=True),
    ),
    "online there": (
        spec(qos=QoSClass.LS, cgroup_path=path(CgroupBase.BEST_EFFORT)),
        HostApplication("db", "/kubepods/besteffort/x", "LS", "koord-prod"),
    ),
}


@pytest.mark.parametrize(("source", "expected"), CLASSES.values(), ids=CLASSES.keys())
def test_what_a_host_application_counts_as(source: HostApplicationSpec, expected: HostApplication) -> None:
    """Best effort only by class and place (Koordinator suppress); without a priority it is never less than its class."""
    assert host_application(source, "/kubepods") == expected
