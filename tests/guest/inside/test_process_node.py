"""The process node's cgroups on real cgroup v2, under both drivers' names."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.observe.layout import CgroupDriver
from agent.edge.discovery import find_layout
from local.node import ownership
from local.node.cgroups import Cgroups, discover
from local.node.kernels import confine
from local.node.ownership import Owner
from local.node.resources import Ceiling
from local.node.share import Claim, share_of
from model.fault import ConfigurationFault
from model.qos import KubernetesQoS

ROOT = Path("/sys/fs/cgroup")
HOLD = "import sys; held = bytearray(b'x' * (60 << 20)); sys.stdin.read()"
TREE = "import os, signal, sys\nsignal.signal(15, signal.SIG_IGN)\nos.fork()\nos.fork()\nos.getpid() == os.getpgid(0) or os.setsid()\nsys.stdin.read()"


@pytest.fixture(params=list(CgroupDriver))
def cgroups(request: pytest.FixtureRequest) -> Iterator[Cgroups]:
    """A prefix of its own with the kubelet's parents of pods."""
    made = Cgroups(discover(ROOT, f"node-{os.getpid()}", request.param))
    for qos in KubernetesQoS:
        made.create(made.layout.qos(qos))
    yield made
    assert asyncio.run(made.remove(made.layout.prefix))


def begin(cgroups: Cgroups, path: str, code: str) -> subprocess.Popen[bytes]:
    """A process that is inside before its code runs."""
    enter = 'for f in $FILES; do echo $$ > "$f"; done; exec "$@"'
    files = {"FILES": " ".join(cgroups.procs_files(path)), "PATH": os.environ["PATH"]}
    command = ["sh", "-c", enter, "sh", sys.executable, "-S", "-c", code]
    return subprocess.Popen(command, env=files, stdin=subprocess.PIPE, start_new_session=True)


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(0.05)


def test_values(cgroups: Cgroups) -> None:
    """The kernel holds what the kubelet would have written, and the agent finds all of it."""
    layout = cgroups.layout
    pod = layout.pod(KubernetesQoS.BURSTABLE, "a-b")
    container = layout.container(KubernetesQoS.BURSTABLE, "a-b", "f" * 64)
    cgroups.create(container)
    cgroups.set_ceiling(pod, Ceiling(512, 50_000, 64 << 20))
    cgroups.set_container(container, Ceiling(512, 50_000, 64 << 20))
    cgroups.hold_shares(layout.qos(KubernetesQoS.BEST_EFFORT), 2)
    held = {file: (cgroups.read("", pod, file) or "").strip() for file in ("cpu.weight", "cpu.max", "memory.max")}
    assert held == {"cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": str(64 << 20)}
    assert cgroups.read("", container, "memory.oom.group") == "1\n"
    assert cgroups.read("", layout.qos(KubernetesQoS.BEST_EFFORT), "cpu.weight") == "1\n"
    seen = find_layout(ROOT, layout.kubepods)
    assert (seen.version, seen.driver, seen.pod(KubernetesQoS.BURSTABLE, "a-b")) == (2, layout.driver, pod)


def test_out_of_memory(cgroups: Cgroups) -> None:
    """Killed whole, counted in the container, its memory gone from all above."""
    path = cgroups.layout.container(KubernetesQoS.BEST_EFFORT, "u", "c")
    cgroups.create(path)
    cgroups.set_container(path, Ceiling(2, memory_limit_bytes=30 << 20))
    assert begin(cgroups, path, HOLD).wait(60) == -signal.SIGKILL
    assert cgroups.oom_kills(path) >= 1


def test_use_and_removal(cgroups: Cgroups) -> None:
    """Counted while it runs; all of it dies, whatever session it is in and whatever it ignores."""
    path = cgroups.layout.container(KubernetesQoS.BEST_EFFORT, "u", "c")
    cgroups.create(path)
    process = begin(cgroups, path, TREE)
    until(lambda: len(cgroups.members(path)) == 4)
    use = cgroups.use(cgroups.layout.prefix)
    assert use is not None and use.cpu_ns > 0 and use.working_set_bytes > 0
    assert asyncio.run(cgroups.remove(cgroups.layout.kubepods))
    assert process.wait(60) == -signal.SIGKILL
    assert not cgroups.exists(cgroups.layout.kubepods)


def test_ownership(cgroups: Cgroups) -> None:
    """A tree that nobody claims is not touched; a dead owner's is taken, with what runs in it."""
    path = cgroups.layout.container(KubernetesQoS.BEST_EFFORT, "u", "c")
    cgroups.create(path)
    with pytest.raises(ConfigurationFault, match="another --id"):
        asyncio.run(ownership.take(cgroups, ownership.this_process()))
    process = begin(cgroups, path, TREE)
    until(lambda: len(cgroups.members(path)) == 4)
    cgroups.create(f"{cgroups.layout.prefix}/{Owner(2**22 - 1, 1).claim}")
    assert asyncio.run(ownership.take(cgroups, ownership.this_process())) == 4
    assert process.wait(60) == -signal.SIGKILL
    assert ownership.owners(cgroups) == [ownership.this_process()]


def test_a_part_of_the_machine(cgroups: Cgroups) -> None:
    """Everything below runs on the node's own CPUs."""
    me = ownership.this_process()
    cgroups.create(f"{cgroups.layout.prefix}/{me.claim}")
    confine(cgroups, share_of(2, 2, (0, 1), 1 << 30, Claim()), me)
    path = cgroups.layout.container(KubernetesQoS.BURSTABLE, "u", "c")
    cgroups.create(path)
    assert (cgroups.read("", path, "cpuset.cpus.effective") or "").strip() == "1"
