"""Wiring of what needs no cluster: putting the original limits back, and the guard beside the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import structlog

from agent.core.observe.knobs import PERIOD_US, SMALLEST_QUOTA_US, RootKnobs, is_online_quota, is_quota
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Knob
from agent.core.observe.preflight import findings
from agent.edge.discovery import find_layout
from agent.edge.executor import KnobExecutor
from agent.edge.nodelock import LockRole, NodeLock, best_effort_folder
from agent.edge.preflight import PreflightPaths, look
from agent.files.controlfiles import ControlFiles
from agent.files.cpucounters import CpuCounters
from agent.files.raisedquotas import lower_raised
from agent.files.restoring import Restored, restore
from agent.files.statefile import StateFile, guard_file, originals_in
from agent.run.heartbeat_guard import GuardShare, HeartbeatGuard, last_beat, last_plan
from model.fault import ConfigurationFault, KernelFault
from model.finding import Finding, Severity

log = structlog.get_logger()


class OfflineOptions(msgspec.Struct, frozen=True):
    """Where limits and what is known of them are; `guard_share_pct` is of all CPUs."""

    state_file: Path
    cgroup_root: Path = Path("/sys/fs/cgroup")
    kubepods: str = ""
    cgroup_driver: CgroupDriver | None = None
    heartbeat: Path = Path("/run/sublet/agent.heartbeat")
    proc: Path = Path("/proc")
    guard_share_pct: int = 20
    guard_silence_seconds: float = 60.0


def preflight_node(options: OfflineOptions) -> tuple[Finding, ...]:
    """What would work on this node; nothing is written."""
    try:
        layout: Layout | KernelFault = find_layout(options.cgroup_root, options.kubepods, options.cgroup_driver)
    except KernelFault as fault:
        layout = fault
    return findings(look(PreflightPaths(options.cgroup_root, options.proc, options.state_file, layout)))


def require_node(options: OfflineOptions) -> None:
    """Log what would work on this node. Raises ConfigurationFault where it forbids to begin."""
    found = preflight_node(options)
    for finding in found:
        told = {name: value for name, value in msgspec.to_builtins(finding).items() if value}
        log.info("preflight", **told)
    forbidding = [finding for finding in found if finding.verdict is Severity.REFUSED]
    if forbidding:
        what = "; ".join(f"{finding.check}: {finding.found}, so {finding.effect}" for finding in forbidding)
        fix = "; ".join(finding.fix for finding in forbidding if finding.fix)
        raise ConfigurationFault("this node", f"Sublet would not work here: {what}", fix)


def restore_all(options: OfflineOptions, *, if_any: bool = False) -> Restored:
    """Put back what agent and guard changed, and forget it.

    Raises ConfigurationFault while one of them runs, and where neither left a file, unless that is none (`if_any`).
    """
    files = (options.state_file, guard_file(options.state_file))
    if not any(file.exists() for file in files):
        if if_any:
            return Restored()
        raise ConfigurationFault(str(options.state_file), "no such file", "nothing was changed, or give --state-file")
    with contextlib.ExitStack() as stack:
        agent, guard = (stack.enter_context(contextlib.closing(StateFile(file))) for file in files)
        # Where both changed a knob, the guard found what the agent had written.
        originals = {**guard.originals, **agent.originals}
        control = ControlFiles(options.cgroup_root, lambda _knob, _texts: None)
        with _alone(control, originals):
            restored = restore(control, originals)
        # What the guard found is the agent's own where both changed a file: alone it must not be left.
        for state in (guard, agent):
            state.remove()
    return restored


@contextlib.contextmanager
def _alone(files: ControlFiles, originals: Mapping[Knob, str]) -> Iterator[None]:
    """Without an agent or guard that limits the same cgroups from another state file."""
    best_effort = (knob for knob in originals if is_quota(knob) and not is_online_quota(knob))
    quotas = sorted(best_effort, key=lambda knob: knob.cgroup.count("/"))
    folder = files.path(quotas[0]).parent if quotas else None
    with contextlib.ExitStack() as stack:
        if folder and folder.is_dir():
            for who in LockRole:
                stack.enter_context(contextlib.closing(NodeLock(folder, who)))
        yield


def guard(options: OfflineOptions) -> None:
    """Watch the agent's heartbeat until SIGTERM or SIGINT; a ceiling that is held then stays."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    layout = find_layout(options.cgroup_root, options.kubepods, options.cgroup_driver)
    share_us = max((os.cpu_count() or 1) * PERIOD_US * options.guard_share_pct // 100, SMALLEST_QUOTA_US)
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(contextlib.closing(StateFile(guard_file(options.state_file))))
        lock = NodeLock(best_effort_folder(options.cgroup_root, layout), LockRole.GUARD)
        stack.enter_context(contextlib.closing(lock))
        # A disk that is full or hangs keeps nobody from cutting what the agent wrote before.
        executor = KnobExecutor(options.cgroup_root, state, elsewhere=lambda: originals_in(options.state_file))
        counters = stack.enter_context(contextlib.closing(CpuCounters(options.cgroup_root, layout)))
        hold, heartbeat = (
            GuardShare(RootKnobs.of(layout).quota, share_us, options.guard_silence_seconds),
            options.heartbeat,
        )
        files = ControlFiles(options.cgroup_root, lambda _knob, _texts: None)
        watch = HeartbeatGuard(
            hold,
            executor,
            state,
            counters.sample,
            time.monotonic(),
            lambda: lower_raised(files, originals_in(options.state_file)),
        )
        log.info("guarding", heartbeat=str(heartbeat), silence_seconds=hold.silence_seconds, share_us=share_us)
        while not stopping.wait(watch.pause_seconds):
            watch.turn(last_beat(heartbeat), lambda: last_plan(heartbeat, layout), time.monotonic())
    log.info("stopped; what is held stays in force")
