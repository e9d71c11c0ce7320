"""Limits that are not in force, on real cgroups: a full disk, files that cannot be written, somebody who writes too."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.limit.brake import BrakePlan
from agent.core.limit.plan import Write
from agent.core.limit.watch import Watch
from agent.core.observe.observation import Knob
from agent.edge.brake import BrakeThread
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.reason import Reason
from tests.agent.kernel.v1_tree import CONTROLLERS, MOUNT, V1Tree, needs_v1
from tests.agent.kernel.whole_tick import CASES, WholeNode, lends, reasons

pytestmark = [pytest.mark.kernel, needs_v1]

REPOSITORY = Path(__file__).parents[3]
ONES_OWN = "needs a mount namespace of its own; run with CAP_SYS_ADMIN"


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    for controller in CONTROLLERS:
        (MOUNT / controller / made.layout.burstable.lstrip("/")).mkdir()
    yield made
    made.remove()


class ForeignWriter:
    """Writes one value over and over; `stop` ends it."""

    def __init__(self, file: Path, text: str) -> None:
        self._file = file
        self._text = text
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            self._file.write_text(self._text)

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(20)


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not condition():
        time.sleep(0.005)
    return condition()


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_written(tree: V1Tree, tmp_path: Path, case: str) -> None:
    """Nothing is lent meanwhile, the condition says why, and it ends with the fault."""
    command = ["unshare", "--mount", "true"]
    if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip(ONES_OWN)
    program = [sys.executable, "-m", "tests.agent.kernel.whole_tick", case, tree.layout.root, str(tmp_path)]
    done = subprocess.run(
        ["unshare", "--mount", *program], capture_output=True, text=True, timeout=100, cwd=REPOSITORY, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("name", "text"), [("quota", "-1"), ("shares", "1024")])
def test_a_foreign_writer(tree: V1Tree, tmp_path: Path, name: str, text: str) -> None:
    """Each tick writes ours, and finds theirs a tick later."""
    node = WholeNode(tree.layout, tmp_path, tmp_path / "state")
    assert lends(node.turns()[-1])
    file = node.executor.path(node.knobs.quota if name == "quota" else node.knobs.fixed[1].knob)
    ours = file.read_text()
    assert ours.strip() != text
    writer = ForeignWriter(file, text)
    results = []
    try:
        for _ in range(6):
            assert eventually(lambda: file.read_text().strip() == text)
            results.append(node.turn())
    finally:
        writer.stop()
    # A weight that held our value from the start is known as ours from the first repair on.
    assert not any(lends(result) for result in results[3:])
    assert all(reasons(result) == {"LimitNotKept"} for result in results[3:])
    after = node.turns(62)
    assert reasons(after[0]) == {"LimitNotKept"} and after[-1].unenforced == () and lends(after[-1])


def test_the_brake_sees_a_foreign_writer(tree: V1Tree, tmp_path: Path) -> None:
    """One that is never there when the tick looks."""
    node = WholeNode(tree.layout, tmp_path, tmp_path / "state")
    assert lends(node.turns()[-1])
    file, quota = node.executor.path(node.knobs.quota), node.knobs.quota
    looks: list[Knob] = []

    def look(knob: Knob) -> None:
        node.executor.look(knob)
        looks.append(knob)

    brake = BrakeThread(MOUNT, tree.layout, 0.02, lambda *_: None, lambda: None, look=look)
    brake.arm(Watch(BrakePlan(quota, (), 0, 2000, int(node.quota), 1 << 40)))
    brake.start()
    results = []
    try:
        for _ in range(3):
            ours, before = file.read_text(), len(looks)
            file.write_text("-1")
            # The second look from now began after that write.
            assert eventually(lambda: len(looks) > before + 1)  # noqa: B023
            file.write_text(ours)
            results.append(node.turn())
    finally:
        brake.stop()
    assert [lends(result) for result in results] == [True, False, False]


def test_a_value_that_the_kernel_changes(tree: V1Tree, tmp_path: Path) -> None:
    """It takes one share and holds two: the outcome has the code."""
    knob = tree.shares()
    executor = KnobExecutor(MOUNT, StateFile(tmp_path / "agent.json"))
    decision = Decision(knob.subject, knob.file, 1, Unit.SHARES, Reason.WEIGHT_HELD, (Term("x", 1),))
    (outcome,) = executor.apply((Write(knob, 1, 1024, decision),), 0)
    assert (outcome.cause, tree.said(knob)) == (Reason.LIMIT_NOT_KEPT, ["2"])
