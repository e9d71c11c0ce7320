"""Preflight findings: what will work on a node, told before anything is written there.

Sources: kernel Documentation/admin-guide/cgroup-v2.rst and accounting/psi.rst; the versions are those of mainline in
which a file appeared, and the files themselves are what counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from model.finding import Finding, Severity

RECOMMENDED_KERNEL = (4, 19)
CAP_KILL, CAP_SYS_RESOURCE = 5, 24
"""Bits of CapEff, see linux/capability.h."""
RIVALS = {
    "koordlet": "Koordinator's agent",
    "katalyst-agent": "Katalyst's agent",
    "vc-agent": "Volcano's agent",
    "volcano-agent": "Volcano's agent",
    "crane-agent": "Crane's agent",
}
"""Programs that write the same control files, by the name of their process (the kernel keeps 15 characters)."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


class PreflightFacts(msgspec.Struct, frozen=True):
    """What is there. `kubepods` is empty where none was found, `trouble` says why; `knobs` are the control files of the
    best-effort root that exist, `unwritable` those of them that cannot be written; `controllers` of cgroup v1 or v2;
    `rivals` are process names; `capabilities` is CapEff, None where unknown; `memory_kept` is a control file by which
    somebody else protects or slows down memory of pods, empty where none was found."""

    kernel: str
    cgroup_version: int = 0
    kubepods: str = ""
    driver: str = ""
    trouble: str = ""
    controllers: frozenset[str] = frozenset()
    knobs: frozenset[str] = frozenset()
    unwritable: tuple[str, ...] = ()
    pressure: bool = False
    kill_file: bool = False
    capabilities: int | None = None
    memory_kept: str = ""
    rivals: tuple[str, ...] = ()
    state: str = ""
    state_trouble: str = ""


def findings(facts: PreflightFacts) -> tuple[Finding, ...]:
    """Every check in the order a person would ask; each says what follows for lending."""
    return (
        _kernel(facts),
        _cgroups(facts),
        *(_limits(facts) if facts.kubepods else ()),
        _pressure(facts),
        _kill(facts),
        _state(facts),
        _rivals(facts),
    )


def _limits(facts: PreflightFacts) -> Iterator[Finding]:
    """What can be said only of cgroups that were found."""
    yield _controllers(facts)
    yield _writable(facts)
    yield _idle(facts)
    yield _memory(facts)
    if facts.memory_kept:
        yield _memory_kept(facts)


def _kernel(facts: PreflightFacts) -> Finding:
    found = _VERSION.match(facts.kernel)
    version = tuple(int(part) for part in found.groups()) if found else (0, 0)
    if version >= RECOMMENDED_KERNEL:
        return Finding("kernel", facts.kernel)
    recommended = ".".join(map(str, RECOMMENDED_KERNEL))
    return Finding(
        "kernel", facts.kernel, "CPU quotas throttle more than they should", Severity.LIMITED, recommended + "+"
    )


def _cgroups(facts: PreflightFacts) -> Finding:
    if facts.kubepods:
        return Finding("cgroups", f"v{facts.cgroup_version}, {facts.driver} driver, {facts.kubepods}")
    return Finding("cgroups", facts.trouble, "nothing can be measured or limited", Severity.REFUSED, "see --kubepods")


def _controllers(facts: PreflightFacts) -> Finding:
    effects = {"cpu": "best effort's CPU cannot be held back", "memory": "memory cannot be measured"}
    if missing := [name for name in effects if name not in facts.controllers]:
        effect = "; ".join(effects[name] for name in missing)
        return Finding("controllers", f"without {', '.join(missing)}", effect, Severity.REFUSED, "enable them at boot")
    wanted = {"cpuset": "policy cpuset does not work", "pids": "a fork bomb in a batch pod is not held back"}
    if missing := [name for name in wanted if name not in facts.controllers]:
        effect = "; ".join(wanted[name] for name in missing)
        return Finding("controllers", f"without {', '.join(missing)}", effect, Severity.LIMITED)
    return Finding("controllers", ", ".join(sorted(facts.controllers)))


def _writable(facts: PreflightFacts) -> Finding:
    if not facts.unwritable:
        return Finding("control files", "writable")
    effect = "only mode observe works"
    return Finding(
        "control files", f"read-only: {', '.join(facts.unwritable)}", effect, Severity.REFUSED, "run as root"
    )


def _idle(facts: PreflightFacts) -> Finding:
    if "cpu.idle" in facts.knobs:
        return Finding("cpu.idle", "there")
    return Finding(
        "cpu.idle", "missing", "best effort keeps the smallest weight instead", Severity.LIMITED, "Linux 5.15"
    )


def _memory(facts: PreflightFacts) -> Finding:
    if "memory.high" in facts.knobs:
        return Finding("memory.high", "there")
    effect = "best effort is evicted, not slowed, when memory runs short"
    return Finding("memory.high", "missing", effect, Severity.LIMITED, "cgroup v2")


def _memory_kept(facts: PreflightFacts) -> Finding:
    """Kubelets write these by memoryReservationPolicy and memoryThrottlingFactor alone (Kubernetes 1.37)."""
    effect = "it stays; where memoryQOS is on too, the larger min and low and the smaller high hold"
    return Finding("memory QoS of the kubelet", facts.memory_kept, effect)


def _pressure(facts: PreflightFacts) -> Finding:
    """Windows below 2 s need the capability, see psi_trigger_create in kernel/sched/psi.c."""
    if not facts.pressure:
        effect = "counters are watched each 100 ms instead"
        return Finding("pressure (PSI)", "missing", effect, Severity.LIMITED, "Linux 4.20 with psi=1")
    if not _able(facts, CAP_SYS_RESOURCE):
        effect = "triggers answer after 2 s; counters are watched each 100 ms"
        return Finding("pressure (PSI)", "without CAP_SYS_RESOURCE", effect, Severity.LIMITED, "grant it")
    return Finding("pressure (PSI)", "there, with short windows")


def _kill(facts: PreflightFacts) -> Finding:
    if facts.kill_file or _able(facts, CAP_KILL):
        return Finding("last resort", "cgroup.kill" if facts.kill_file else "SIGKILL")
    effect = "memory that runs out between two ticks is the kernel's to solve"
    return Finding("last resort", "neither cgroup.kill nor CAP_KILL", effect, Severity.LIMITED, "grant CAP_KILL")


def _state(facts: PreflightFacts) -> Finding:
    if not facts.state_trouble:
        return Finding("state", facts.state)
    effect = "changed limits could not be put back later"
    return Finding("state", facts.state_trouble, effect, Severity.REFUSED, "mount a writable directory there")


def _rivals(facts: PreflightFacts) -> Finding:
    """It forbids nothing: a process has the name that its author likes, and must not keep the agent from starting."""
    names = sorted({f"{RIVALS[name]} ({name})" for name in facts.rivals})
    if not names:
        return Finding("other agents", "none")
    effect = "two agents would undo each other's limits, if it is what its name says"
    return Finding("other agents", ", ".join(names), effect, Severity.LIMITED, "remove it first")


def _able(facts: PreflightFacts, bit: int) -> bool:
    return facts.capabilities is not None and bool(facts.capabilities >> bit & 1)
