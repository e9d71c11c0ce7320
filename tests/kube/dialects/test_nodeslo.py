"""NodeSLO: suppression and host applications."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.nodeslo import (
    CgroupBase,
    CgroupPath,
    EvictionFields,
    EvictionPolicy,
    HostApplicationFields,
    HostApplicationSpec,
    NodeSLOFields,
    SuppressFields,
    SuppressPolicy,
    host_application,
    node_slo,
)
from kube.objects import Metadata, NodeSLO
from model.fault import ConfigurationFault
from model.qos import PriorityBand, QoSClass
from model.strategy import HostApplication


def slo(spec: Any) -> NodeSLO:
    return NodeSLO(Metadata(name="n"), spec)


# What koord-manager renders with every section of the API filled in.
RENDERED = {
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
    assert node_slo(slo(RENDERED)) == NodeSLOFields(
        SuppressFields(True, 65, 10, SuppressPolicy.CPUSET),
        HostApplicationFields([HostApplicationSpec("nginx", PriorityBand.PROD, QoSClass.LS, path)]),
        EvictionFields(True, 70, cpu_limit_policy=EvictionPolicy.REAL_LIMIT),
    )


EVICTIONS = {
    "enable": True,
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
    found = node_slo(slo(threshold(**EVICTIONS))).eviction
    assert found == EvictionFields(
        True, 80, 75, 120, 100, 60, 60, 85, 60, 90, 85, 130, 110, EvictionPolicy.ALLOCATABLE, 5999, 7999
    )
    assert found.cpu_satisfaction_lower_pct == found.cpu_satisfaction_upper_pct == 60


@pytest.mark.parametrize("spec", [None, {}, {"resourceUsedThresholdWithBE": None, "hostApplications": None}])
def test_an_empty_document_is_silent(spec: Any) -> None:
    """It sets nothing, so that what was stays."""
    assert node_slo(slo(spec)) == NodeSLOFields()


def threshold(**fields: Any) -> dict[str, Any]:
    return {"resourceUsedThresholdWithBE": fields}


def application(**fields: Any) -> dict[str, Any]:
    return {"hostApplications": [{"name": "a", **fields}]}


SECTION = "resourceUsedThresholdWithBE"


def wrong(field: str, value: Any, told: str = "") -> tuple[Any, str]:
    """A field of the section and the start of what is said of it."""
    return threshold(**{field: value}), f".{SECTION}.{field}: is {value!r}{told}"


def reversed_pair(lower: tuple[str, int], upper: tuple[str, int], told: str) -> tuple[Any, str]:
    return threshold(**dict([lower, upper])), f".{SECTION}: is not valid (expected {lower[0]} {told} {upper[0]})"


MEMORY_PAIR = ("memoryEvictLowerPercent", 70), ("memoryEvictThresholdPercent", 70)
CPU_PAIR = ("cpuEvictLowerPercent", 91), ("cpuEvictThresholdPercent", 90)
SATISFACTION_PAIR = ("cpuEvictBESatisfactionLowerPercent", 60), ("cpuEvictBESatisfactionUpperPercent", 59)
REQUEST_PAIRS = [
    ((f"{of}AllocatableEvictLowerPercent", 100), (f"{of}AllocatableEvictThresholdPercent", 100))
    for of in ("memory", "cpu")
]
BROKEN: dict[str, tuple[Any, str]] = {
    "no object": ("hello", ": is 'hello' (expected `object`"),
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
    "memory above the node": wrong("memoryEvictThresholdPercent", 101, " (expected `int` <= 100"),
    "memory below nothing": wrong("memoryEvictLowerPercent", -1, " (expected `int` >= 0"),
    "CPU above the node": wrong("cpuEvictThresholdPercent", 101),
    "CPU's lower share as text": wrong("cpuEvictLowerPercent", "70"),
    "satisfied above 60 %": wrong("cpuEvictBESatisfactionLowerPercent", 61),
    "satisfied by everything": wrong("cpuEvictBESatisfactionUpperPercent", 100, " (expected `int` <= 99"),
    "best effort's use": wrong("cpuEvictBEUsageThresholdPercent", 101),
    "no window": wrong("cpuEvictTimeWindowSeconds", 0, " (expected `int` >= 1"),
    "a negative share of what is lent": wrong("cpuAllocatableEvictThresholdPercent", -1),
    "a share of memory lent": wrong("memoryAllocatableEvictLowerPercent", 1.5),
    "no number of a priority": wrong("evictEnabledPriorityThreshold", 1 << 31),
    "a priority of prod": wrong("allocatableEvictPriorityThreshold", 8000, " (expected `int` <= 7999"),
    "an unknown limit": wrong("cpuEvictPolicy", "evictByLimit", " (write one of evictByRealLimit, evictByAllocatable)"),
    "memory's shares reversed": reversed_pair(*MEMORY_PAIR, "below"),
    "CPU's shares reversed": reversed_pair(*CPU_PAIR, "below"),
    "satisfaction reversed": reversed_pair(*SATISFACTION_PAIR, "at most"),
    "memory requests reversed": reversed_pair(*REQUEST_PAIRS[0], "below"),
    "CPU requests reversed": reversed_pair(*REQUEST_PAIRS[1], "below"),
    "a word for a switch": (threshold(enable="yes"), f".{SECTION}.enable: is 'yes' (expected `bool"),
    "a list for a section": ({SECTION: []}, f".{SECTION}: is a list"),
    "a section nothing acts on": ({"cpuBurstStrategy": "auto"}, ".cpuBurstStrategy: is 'auto' (expected `object"),
    "no list of applications": ({"hostApplications": {}}, ".hostApplications: is an object (expected `array"),
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
    """Object, field, value and fix in one line."""
    with pytest.raises(ConfigurationFault) as raised:
        node_slo(slo(spec))
    assert str(raised.value).startswith(f"NodeSLO n: spec{told}")


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
