"""Services of the node beside best effort, which has all of the weight of kubepods while online pods rest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.observe.files import cpu_pressure_file
from model.reason import Reason
from tests.agent.kernel.v1_tree import CONTROLLERS, MOUNT, V1Tree, needs_v1, removed
from tests.agent.kernel.whole_tick import WholeNode

pytestmark = [
    pytest.mark.kernel,
    needs_v1,
    pytest.mark.skipif(
        not (MOUNT / "unified/cpu.pressure").exists(), reason="needs PSI in `unified`; run with psi=1 on a v1 host"
    ),
]

TURNS = 20


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    """Weights as kubelet and systemd give them: kubepods' is the node's CPUs, the services' that of one."""
    made = V1Tree()
    for controller in CONTROLLERS:
        (MOUNT / controller / made.layout.burstable.lstrip("/")).mkdir()
    for each in ("cpu", "unified"):
        (MOUNT / each / made.name / "services").mkdir(parents=True)
    (MOUNT / "cpu" / made.name / "kubepods/cpu.shares").write_text(f"{1024 * (os.cpu_count() or 1)}")
    yield made
    made.remove()
    for folder in (MOUNT / "unified" / made.name / "services", MOUNT / "unified" / made.name):
        removed(folder)


def work(tree: V1Tree, *folders: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()\nwhile True: pass"], stdin=subprocess.PIPE)
    tree.processes.append(process)
    for folder in folders:
        (folder / "cgroup.procs").write_text(str(process.pid))
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.close()


def test_services_that_wait_for_cpu_have_best_effort_cut(tree: V1Tree, tmp_path: Path) -> None:
    """No ceiling by use would: what they cannot get they do not use."""
    tree.make("podx")
    services = f"/{tree.name}/services"
    node = WholeNode(tree.layout, tmp_path, tmp_path, MOUNT / cpu_pressure_file(1, services))
    busy = os.cpu_count() or 1
    for _ in range(2 * busy):
        work(tree, *(MOUNT / controller / tree.cgroup("podx").lstrip("/") for controller in CONTROLLERS))
        work(tree, *(MOUNT / each / services.lstrip("/") for each in ("cpu", "unified")))
    notes = []
    for _ in range(TURNS):
        quota = node.turn().limits.ceiling
        if quota.reason is Reason.ONLINE_SUFFERING:
            notes = [term.note for term in quota.terms if term.name == "online pods wait for CPU"]
            break
    assert any(note.startswith("the node's services waiting") for note in notes), quota
    assert 0 < int(node.quota) < busy * 100_000 * 3 // 4
