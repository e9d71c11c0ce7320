"""What follows for lending from what a node has: every check, met and not met."""

from __future__ import annotations

import msgspec
import pytest

from agent.core.observe.preflight import CAP_KILL, CAP_SYS_RESOURCE, PreflightFacts, findings
from model.finding import Finding, Severity, refused

GOOD = PreflightFacts(
    kernel="6.1.0-18-amd64",
    cgroup_version=2,
    kubepods="/kubepods.slice",
    driver="systemd",
    controllers=frozenset({"cpu", "cpuset", "memory", "io", "pids"}),
    knobs=frozenset({"cpu.max", "cpu.weight", "cpu.idle", "memory.high"}),
    pressure=True,
    kill_file=True,
    capabilities=1 << CAP_SYS_RESOURCE | 1 << CAP_KILL,
    state="/var/lib/sublet",
)


def row(check: str, **changes: object) -> Finding:
    found = {finding.check: finding for finding in findings(msgspec.structs.replace(GOOD, **changes))}
    return found[check]


def test_a_good_node_has_nothing_to_mend():
    rows = findings(GOOD)
    assert {each.verdict for each in rows} == {Severity.OK} and not refused(rows)
    assert [each.check for each in rows] == [
        *("kernel", "cgroups", "controllers", "control files", "cpu.idle", "memory.high"),
        *("pressure (PSI)", "last resort", "state", "other agents"),
    ]


CASES: dict[str, tuple[str, dict[str, object], Severity, str]] = {
    "an old kernel": ("kernel", {"kernel": "3.10.0-1160.el7"}, Severity.LIMITED, "4.19+"),
    "the oldest recommended one": ("kernel", {"kernel": "4.19.0"}, Severity.OK, "4.19.0"),
    "a kernel of an unknown kind": ("kernel", {"kernel": "odd"}, Severity.LIMITED, "odd"),
    "no memory controller": ("controllers", {"controllers": frozenset({"cpu"})}, Severity.REFUSED, "without memory"),
    "no cpuset": ("controllers", {"controllers": frozenset({"cpu", "memory"})}, Severity.LIMITED, "policy cpuset"),
    "no pids": (
        "controllers",
        {"controllers": frozenset({"cpu", "memory", "cpuset"})},
        Severity.LIMITED,
        "a fork bomb",
    ),
    "a read-only tree": ("control files", {"unwritable": ("cpu.max",)}, Severity.REFUSED, "only mode observe"),
    "no cpu.idle": ("cpu.idle", {"knobs": frozenset({"memory.high"})}, Severity.LIMITED, "smallest weight"),
    "no memory.high": ("memory.high", {"knobs": frozenset({"cpu.idle"})}, Severity.LIMITED, "evicted, not slowed"),
    "a kubelet with memory QoS": (
        "memory QoS of the kubelet",
        {"memory_kept": "memory.low of /kubepods/burstable"},
        Severity.OK,
        "memory.low of /kubepods/burstable",
    ),
    "no pressure": ("pressure (PSI)", {"pressure": False}, Severity.LIMITED, "each 100 ms"),
    "no capability for short windows": ("pressure (PSI)", {"capabilities": 0}, Severity.LIMITED, "after 2 s"),
    "unknown capabilities": ("pressure (PSI)", {"capabilities": None}, Severity.LIMITED, "CAP_SYS_RESOURCE"),
    "signals instead of cgroup.kill": ("last resort", {"kill_file": False}, Severity.OK, "SIGKILL"),
    "nothing kills": ("last resort", {"kill_file": False, "capabilities": 0}, Severity.LIMITED, "CAP_KILL"),
    "no place for originals": ("state", {"state_trouble": "/var cannot be written"}, Severity.REFUSED, "put back"),
    "Koordinator's agent": (
        "other agents",
        {"rivals": ("koordlet",)},
        Severity.LIMITED,
        "Koordinator's agent (koordlet)",
    ),
}


@pytest.mark.parametrize(("check", "changes", "verdict", "told"), CASES.values(), ids=CASES)
def test_what_is_missing_says_what_follows(check, changes, verdict, told):
    found = row(check, **changes)
    assert found.verdict is verdict
    assert told in " ".join((found.found, found.effect, found.fix))


def test_without_pods_nothing_is_said_of_their_cgroups():
    rows = findings(msgspec.structs.replace(GOOD, kubepods="", trouble="/sys/fs/cgroup holds no kubepods cgroup"))
    assert refused(rows) and "control files" not in {each.check for each in rows}
