"""`sublet simulate node`: limits and evictions, by the agent's own decisions on an untouched node."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.cli.simulate.test_node import (
    BATCH_CPU,
    BATCH_MEMORY,
    PAGE,
    Object,
    metric,
    node,
    pod,
    settings,
    slo,
    terms,
    usage,
)

NOW = "2026-01-02T03:04:30Z"
ROOT = "/kubepods/besteffort"
GIB = 1 << 30
Run = Callable[..., Any]


def big(**metadata: Any) -> Object:
    """Ten CPUs and 100 GiB, nothing reserved."""
    return node(memory="100Gi", **metadata)


def batch(name: str = "job", *, cpu: str = "2000", memory: str = "4Gi", **metadata: Any) -> Object:
    """A pod that asks for batch resources alone, so that it is below the best-effort root."""
    found = pod(name, qos="BE", priority=5000)
    asked = {BATCH_CPU: cpu, BATCH_MEMORY: memory}
    found["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    found["metadata"] |= metadata
    return found


def measured(memory: str = "20Gi", cpu: Any = "3500m", **pods: Object) -> Object:
    """1 CPU outside pods; web uses 1500m, job 1 CPU and 3 GiB."""
    rows = {"web": usage("1500m", "5Gi"), "job": usage(1, "3Gi")} | pods
    return metric(pods=rows, nodeMetric={"nodeUsage": usage(cpu, memory), "systemUsage": usage(1, "1Gi")})


def cpu_list(*cpus: tuple[int, int]) -> Object:
    """A NodeResourceTopology that tells CPU and core."""
    detail = [{"id": cpu, "core": core, "socket": 0, "node": 0} for cpu, core in cpus]
    told = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    version = "topology.node.k8s.io/v1alpha1"
    return {"apiVersion": version, "kind": "NodeResourceTopology", "metadata": {"name": "n1", "annotations": told}}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The JSON of one Node."""

    def ran(*documents: Object, version: int = 2, now: str = NOW) -> Any:
        file = tmp_path / "all.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        options = ["--now", now, "--cgroup-version", str(version), "-o", "json"]
        assert main(["simulate", "node", "-f", str(file), *options]) == 0
        return json.loads(capsys.readouterr().out)[0]

    return ran


def held(found: Object, cgroup: str = ROOT) -> dict[str, Any]:
    """File → value of one cgroup."""
    return {limit["knob"]: limit["value"] for limit in found["limits"] if limit["cgroup"] == cgroup}


def limit(found: Object, knob: str, cgroup: str = ROOT) -> Object:
    return next(each for each in found["limits"] if (each["cgroup"], each["knob"]) == (cgroup, knob))


@pytest.mark.parametrize(
    ("case", "objects", "expected"),
    [
        # 10 CPUs: 1000000 + 5 % - 100000; the 150000 that the online pod uses are within its request
        ("adaptive", [measured()], 950_000),
        # 1000000 - 35 % - 100000 - 150000
        ("cfsQuota", [measured(), slo(enable=True, cpuSuppressPolicy="cfsQuota")], 400_000),
        ("a threshold of its own", [measured(), slo(enable=True, cpuSuppressThresholdPercent=50)], 250_000),
        ("no room: the floor", [measured(), slo(enable=True, cpuSuppressThresholdPercent=0)], 2000),
        ("switched off", [measured(), slo(enable=False)], -1),
        ("no NodeMetric", [], -1),
        ("one that is too old", [measured() | {"status": {**measured()["status"], "updateTime": "2026-01-02T02:00:00Z"}}], -1),
        # use of a pod that nobody gave: nobody knows its request
        ("a pod that is not given is online", [measured(gone=usage("500m", 1))], 900_000),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("version", "file"), [(1, "cpu.cfs_quota_us"), (2, "cpu.max")])
def test_the_ceiling_by_case(
    case: str, objects: list[Object], expected: int, version: int, file: str, run: Run
) -> None:
    """The quota of the best-effort root in µs of each 100 ms, whatever the version calls it."""
    found = limit(run(big(), pod(), batch(), *objects, version=version), file)
    assert (found["value"], found["unit"]) == (expected, "us")
    assert sum(terms(found).values()) == expected


def test_terms_of_the_ceiling(run: Run) -> None:
    """Named and signed, with reason and policy: the documented keys and no other."""
    assert limit(run(big(), pod(), batch(), measured()), "cpu.max") == {
        "cgroup": ROOT,
        "knob": "cpu.max",
        "value": 950_000,
        "unit": "us",
        "terms": [
            {"name": "capacity", "value": 1_000_000},
            {"name": "margin", "value": 50_000},
            {"name": "system used", "value": -100_000},
            {"name": "online used", "value": -150_000},
            {"name": "within requests", "value": 150_000},
        ],
        "reason": "QuotaLowered",
        "policy": "adaptive",
    }


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, {"cpu.cfs_quota_us": 200_000, "cpu.shares": 2048, "memory.limit_in_bytes": 4 * GIB}),
        (2, {"cpu.max": 200_000, "cpu.weight": 79, "memory.max": 4 * GIB}),
    ],
)
def test_limits_of_batch_pods(version: int, expected: dict[str, int], run: Run) -> None:
    """Of the pod and of its container, by what they ask for; online pods have none of ours."""
    found = run(big(), pod(), batch(uid="u-1"), measured(), version=version)
    assert held(found, f"{ROOT}/podu-1") == held(found, f"{ROOT}/podu-1/a") == expected
    assert not [each for each in found["limits"] if not each["cgroup"].startswith(ROOT)]


def test_pods_need_no_uid(run: Run) -> None:
    """Two from files without one are still two pods."""
    found = run(big(), batch("a"), batch("b"), measured())
    assert {f"{ROOT}/podshop_a", f"{ROOT}/podshop_b"} <= {each["cgroup"] for each in found["limits"]}


def test_memory_high_is_what_is_held_and_the_room(run: Run) -> None:
    """3 GiB and 70 % of 100 GiB less the 20 that are used; cgroup v1 has no such file."""
    objects = [big(), pod(), batch(), measured()]
    assert terms(limit(run(*objects), "memory.high")) == {"charged": 3 * GIB, "room": 50 * GIB}
    assert "memory.high" not in held(run(*objects, version=1))


CPUSET = slo(enable=True, cpuSuppressPolicy="cpuset", cpuSuppressThresholdPercent=65)


def test_a_list_of_cpus_is_a_text(run: Run) -> None:
    """Of 10 CPUs, 6500m - 1000m - 1500m are left: four; terms count CPUs."""
    found = limit(run(big(), pod(), batch(), measured(), CPUSET), "cpuset.cpus")
    assert (found["value"], found["policy"], found["reason"]) == ("0-3", "cpuset", "CpusNarrowed")
    assert sum(terms(found).values()) == 4


def test_the_topology_tells_which_cpus_are_one_core(run: Run) -> None:
    """Whole cores: 0 with 5 and 1 with 6."""
    cores = cpu_list(*((cpu, cpu % 5) for cpu in range(10)))
    assert limit(run(big(), pod(), batch(), measured(), CPUSET, cores), "cpuset.cpus")["value"] == "0-1,5-6"


def test_on_v1_every_cgroup_has_its_list(run: Run) -> None:
    """The kernel keeps each child's; on v2 the root's is enough."""
    objects = [big(), pod(), batch(uid="u"), measured(), CPUSET]
    lists = {e["cgroup"]: e["value"] for e in run(*objects, version=1)["limits"] if e["knob"] == "cpuset.cpus"}
    assert lists == dict.fromkeys((ROOT, f"{ROOT}/podu", f"{ROOT}/podu/a"), "0-3")
    assert [e["cgroup"] for e in run(*objects)["limits"] if e["knob"] == "cpuset.cpus"] == [ROOT]


@pytest.mark.parametrize("version", [1, 2])
def test_limits_come_in_one_order(version: int, run: Run) -> None:
    """The best-effort root first, then by cgroup, then by file, whatever order the pods were given in."""
    pods = [batch("b"), batch("a"), pod()]
    found = run(big(), *pods, measured(), version=version)["limits"]
    places = [(each["cgroup"] != ROOT, each["cgroup"], each["knob"]) for each in found]
    assert places == sorted(places) and len(set(places)) == len(places)
    assert found == run(big(), *pods[::-1], measured(), version=version)["limits"]


FULL = measured("77Gi", big=usage(1, "30Gi"), small=usage(1, "10Gi"))
TOLD: Object = {"annotations": {"sublet.dev/preemption-notice-seconds": "20"}}


@pytest.mark.parametrize(
    ("case", "objects", "expected"),
    [
        # 77 - 68 GiB are missing: small is enough, but big frees most
        ("the one that frees most of one priority", [batch("big"), batch("small"), FULL], [("shop/big", 30 * GIB, 0)]),
        ("a lower priority first", [batch("big", memory="40Gi"), pod("small", qos="BE", cpu=0, memory=0, priority=4000), FULL], [("shop/small", 10 * GIB, 0)]),
        ("one that is told first", [batch("big", **TOLD), FULL], [("shop/big", 30 * GIB, 20)]),
        ("as many as needed", [batch("a"), batch("b"), measured("77Gi", a=usage(1, "5Gi"), b=usage(1, "6Gi"))], [("shop/b", 6 * GIB, 0), ("shop/a", 5 * GIB, 0)]),
        ("below the threshold", [batch("big"), measured("69Gi", big=usage(1, "30Gi"))], []),
        ("no possible victim", [pod(), FULL], []),
        ("one that is not measured frees nothing", [batch("new"), FULL], []),
        ("switched off", [batch("big"), FULL, slo(enable=False)], []),
        ("a threshold of its own", [batch("big"), FULL, slo(enable=True, memoryEvictThresholdPercent=80)], []),
        ("no NodeMetric", [batch("big")], []),
    ],
)  # fmt: skip
def test_evictions_by_case(case: str, objects: list[Object], expected: list[tuple[str, int, int]], run: Run) -> None:
    """Victims, how much memory each frees, and how long before it is told."""
    found = run(big(), *objects)["evictions"]
    assert [(each["pod"], each["frees"], each["notice_seconds"]) for each in found] == expected


def test_an_eviction_has_the_documented_shape(run: Run) -> None:
    """Every key, and no other."""
    assert run(big(), batch("big"), FULL)["evictions"] == [
        {
            "pod": "shop/big",
            "reason": "BEMemoryEvict",
            "frees": 30 * GIB,
            "unit": "bytes",
            "resource": "used memory",
            "terms": [{"name": "in use", "value": 30 * GIB}],
            "notice_seconds": 0,
            "grace_seconds": None,
        }
    ]


def test_evictions_by_requests(run: Run) -> None:
    """Against what is lent now, not what the Node still says: 2000m more than lent frees that of batch-cpu."""
    rule: Object = {"cpuAllocatableEvictThresholdPercent": 100, "cpuAllocatableEvictLowerPercent": 90}
    on = slo(enable=True, allocatableEvictPriorityThreshold=5999, **rule)
    job = batch(cpu="9000", labels={"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true"})
    (found,) = run(big(), job, measured(), on)["evictions"]
    assert (found["reason"], found["resource"], found["frees"]) == ("CPUAllocatableEvict", BATCH_CPU, 9000)


PINNED = {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": "0-8"})}
EXCLUSIVE = pod(qos="LSE") | {"metadata": {**pod(qos="LSE")["metadata"], "annotations": PINNED}}
EVERY_ACTION: dict[str, list[Object]] = {
    "plain": [big(), pod(), batch(), measured()],
    "reserved": [big() | {"status": {"capacity": {"cpu": 10, "memory": "100Gi"}, "allocatable": {"cpu": 5, "memory": "90Gi"}}}, measured()],
    "quota": [big(), pod(), batch(), measured(), slo(enable=True, cpuSuppressPolicy="cfsQuota", cpuSuppressThresholdPercent=0)],
    "cpuset": [big(), pod(), batch(), measured(), CPUSET],
    "cpuset, no room": [big(), measured(cpu=10), slo(enable=True, cpuSuppressPolicy="cpuset", cpuSuppressThresholdPercent=1)],
    "cpuset, blind": [big(), CPUSET],
    "cpuset, CPUs of others": [big(), EXCLUSIVE, measured(), CPUSET],
    "CPUs of others beside a quota": [big(), EXCLUSIVE, batch(), cpu_list(*((cpu, cpu) for cpu in range(10))), measured()],
    "off": [big(), measured(), slo(enable=False)],
    "a fast node": [node(memory="100Gi", annotations={"node.koordinator.sh/cpu-normalization-ratio": "1.50"}), batch(), measured()],
    "more than it asked for": [big(), batch(memory="1Gi"), measured()],
    "odd bytes": [big(), batch(memory="4294967297"), measured(job=usage(1, 5))],
    "evicted": [big(), batch("big"), FULL],
    "asked for": [big(), batch(cpu="9000", labels={"koordinator.sh/qosClass": "BE", "koordinator.sh/eviction-enabled": "true"}), measured(), slo(enable=True, allocatableEvictPriorityThreshold=5999, cpuAllocatableEvictThresholdPercent=100, cpuAllocatableEvictLowerPercent=90)],
    "a Node without capacity": [{"kind": "Node", "metadata": {"name": "n1"}, "status": None}, batch(), measured()],
    "amounts nobody has": [node(cpu="1e30", memory="1e400"), batch(cpu="1e30", memory="1e400"), measured()],
    "less than a CPU": [node(cpu="500m"), batch(), metric(), CPUSET],
    "on": [big(), settings()],
}  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("case", EVERY_ACTION)
def test_every_number_is_its_terms(case: str, version: int, run: Run) -> None:
    """Of limits and evictions, also where the objects are odd; a list of CPUs counts."""
    found = run(*EVERY_ACTION[case], version=version)
    assert held(found), "the best-effort root always has limits"
    for each in found["limits"]:
        whole = each["value"] if isinstance(each["value"], int) else counted(each["value"])
        assert sum(part["value"] for part in each["terms"]) == whole, each
    for each in found["evictions"]:
        assert sum(part["value"] for part in each["terms"]) == each["frees"] > 0


def counted(cpus: str) -> int:
    spans = [span.partition("-") for span in cpus.split(",") if span]
    return sum(int(last or first) - int(first) + 1 for first, _, last in spans)


def test_every_term_of_limits_and_evictions_is_documented(run: Run) -> None:
    """docs/simulate.md lists exactly the names that there are, and each reason and unit."""
    found = [run(*objects, version=version) for objects in EVERY_ACTION.values() for version in (1, 2)]
    told = [each for one in found for each in (*one["limits"], *one["evictions"])]
    section = re.search(r"### Terms of limits and evictions\n(.*?)\n### ", PAGE, re.DOTALL)
    assert section is not None
    cells = [line.split("|")[1] for line in section[1].splitlines() if line.startswith("| `")]
    documented = {name for cell in cells for name in re.findall("`(.*?)`", cell)}
    assert {part["name"] for each in told for part in each["terms"]} == documented
    assert {f"`{each['unit']}`" for each in told} <= set(re.findall("`.*?`", PAGE))


def test_a_third_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2."""
    assert main(["simulate", "node", "-f", str(tmp_path), "--cgroup-version", "3"]) == 2
    assert "--cgroup-version" in capsys.readouterr().err
