"""The executor on this host's cgroup v1: orders the kernel accepts, limits that bind, other writers, refusals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent.core.limit.ownership import left_to_us
from agent.core.limit.plan import Write, plan
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.observation import Knob, Value
from agent.edge import executor
from agent.edge.executor import KnobExecutor
from agent.edge.nodelock import NodeLock
from agent.files.statefile import StateFile
from agent.ports import WriteOutcome
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault
from model.reason import Reason
from model.topology import parse_cpus
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_two_cpus, needs_v1

pytestmark = [pytest.mark.kernel, needs_v1]

SPIN = "while True: pass"
MI = 1 << 20


class Agent:
    """Reads, settles, plans and applies as the tick does; `caps` are its memory of tighter writers."""

    def __init__(self, tree: V1Tree, folder: Path) -> None:
        self.tree = tree
        self.state = StateFile(folder / "agent.json")
        self.executor = KnobExecutor(MOUNT, self.state)
        self.caps: dict[Knob, Value | None] = {}

    def turn(self, wanted: Mapping[Knob, Value], meanwhile: Callable[[], None] = lambda: None) -> list[WriteOutcome]:
        readings = self.executor.readings(tuple(wanted))
        limits = {}
        for knob, value in wanted.items():
            self.caps[knob], limits[knob] = left_to_us(
                self.limit(knob, value), readings.readings[knob], self.caps.get(knob)
            )
        meanwhile()
        outcomes = self.executor.apply(plan(limits, readings.readings), readings.brake_cuts)
        assert self.executor.idle(60)
        return list(outcomes)

    def hold(self, wanted: Mapping[Knob, Value]) -> None:
        """One turn, in which everything is accepted."""
        assert [outcome.error for outcome in self.turn(wanted) if outcome.error or outcome.dropped] == []
        assert {knob: self.executor.read(knob) for knob in wanted} == wanted

    def limit(self, knob: Knob, value: Value) -> Limit:
        number = len(parse_cpus(value)) if isinstance(value, str) else value
        terms = (Term("x", number),)
        decision = Decision(knob.subject, knob.file, number, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, terms)
        inherits = self.tree.cpus() if isinstance(value, str) and knob != self.tree.cpus() else None
        return Limit(knob, value, decision, inherits)


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    for container in ("podp/c", "podq/d"):
        made.make(container)
    yield made
    made.remove()


@pytest.fixture
def agent(tree: V1Tree, tmp_path: Path) -> Agent:
    return Agent(tree, tmp_path)


GROUPS = ("", "podp", "podp/c", "podq", "podq/d")
QUOTAS = {
    "nothing yet": (-1, -1, -1, -1, -1),
    "limits of pods": (200_000, 150_000, 100_000, 20_000, 20_000),
    "the root falls below one": (50_000, -1, -1, 20_000, 20_000),
    "and below the other": (10_000, -1, -1, -1, -1),
    "the root rises": (120_000, -1, 100_000, 20_000, 20_000),
    "everything narrows": (40_000, 30_000, 20_000, 10_000, 5_000),
    "everything widens": (190_000, 180_000, 170_000, 160_000, 150_000),
}


@pytest.mark.parametrize("before", QUOTAS.values(), ids=QUOTAS.keys())
def test_nested_quotas(agent: Agent, tree: V1Tree, before: tuple[int, ...]) -> None:
    """From each to each, in the order planned: the kernel refuses none of the writes."""
    for after in QUOTAS.values():
        agent.hold(dict(zip(map(tree.quota, GROUPS), before, strict=True)))
        agent.hold(dict(zip(map(tree.quota, GROUPS), after, strict=True)))


@needs_two_cpus
def test_nested_cpu_lists(agent: Agent, tree: V1Tree) -> None:
    """Shrinking, moving over and growing, with children at each level."""
    for cpus in ("0", "1", "0-1", "1", "0", "0-1"):
        agent.hold({tree.cpus(below): cpus for below in GROUPS})


NESTED = ("podp/c/a", "podp/c/a/b", "podp/c/a/b/c", "podp/c/d")


@needs_two_cpus
@pytest.mark.parametrize("held", ["0", "1", "0-1"])
def test_cpu_lists_that_a_container_made_below_its_own(agent: Agent, tree: V1Tree, held: str) -> None:
    """Privileged, it makes cgroups that nobody lists and puts processes there: the root's list shrinks all the same,
    all of them within it, and grows again; restored they have what they had."""
    agent.hold({tree.cpus(below): "0-1" for below in GROUPS})
    for name in NESTED:
        tree.make(name)
    tree.say({tree.cpus(name): held for name in reversed(NESTED)})
    tree.say({tree.quota(name): 150_000 for name in NESTED})
    tree.run("podp/c/a/b/c", SPIN)
    for cpus in ("0", "1", "0-1", "1", "0"):
        agent.hold({tree.cpus(below): cpus for below in GROUPS})
        lists = [set(parse_cpus(text)) for text in tree.said(*map(tree.cpus, NESTED))]
        assert all(each and each <= set(parse_cpus(cpus)) for each in lists)
    agent.hold({tree.quota(): 20_000})
    agent.executor.restore()
    assert set(tree.said(*map(tree.cpus, GROUPS))) == {"0-1"}
    assert set(tree.said(*map(tree.quota, NESTED))) == {"150000"}


@needs_two_cpus
def test_a_child_that_was_made_in_between(agent: Agent, tree: V1Tree) -> None:
    """The kernel refuses the parent's list for its sake; it steps aside at once, and its original is the parent's."""
    agent.hold({tree.cpus(below): "0" for below in GROUPS})
    outcomes = agent.turn({tree.cpus(below): "1" for below in GROUPS}, lambda: tree.make("podnew/e"))
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert tree.said(tree.cpus(), tree.cpus("podnew"), tree.cpus("podnew/e")) == ["1", "1", "1"]
    agent.executor.restore()
    assert set(tree.said(*map(tree.cpus, (*GROUPS, "podnew", "podnew/e")))) == {"0-1"}


@pytest.mark.parametrize("nested", ["podp/c/nested", "podp/c/\udcff"], ids=["a name", "a name that is no text"])
def test_the_brake_and_quotas_above_its_cut(agent: Agent, tree: V1Tree, nested: str) -> None:
    """Prepared ones go where the kernel says they are in the way; one nobody knew of does not stop the cut either."""
    tree.make(nested)
    agent.hold(dict(zip(map(tree.quota, GROUPS), QUOTAS["limits of pods"], strict=True)))
    tree.say({tree.quota(nested): 90_000})
    below = tuple(
        (tree.quota(group), quota) for group, quota in (("podp", 150_000), ("podp/c", 100_000), ("podq", 20_000))
    )
    assert agent.executor.lower(tree.quota(), 60_000, below) == 200_000
    assert agent.executor.failed_cuts == 0
    assert tree.said(*map(tree.quota, ("", "podp", "podp/c", nested, "podq"))) == [
        "60000",
        "-1",
        "-1",
        "-1",
        "20000",
    ]
    agent.executor.restore()
    # No state file holds such a name: it has what its parents leave it.
    assert tree.said(*map(tree.quota, ("", nested))) == ["-1", "90000" if nested.isprintable() else "-1"]


def test_a_container_with_more_cgroups_than_are_remembered(
    agent: Agent, tree: V1Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All step aside; the state file has no more of them than it may, and those next to the root first."""
    nested = [f"podp/c/{number}" for number in range(20)]
    deep = f"podp/c/0/{'d' * 200}/{'d' * 200}/{'d' * 200}/{'d' * 200}/{'d' * 200}"
    for name in (*nested, deep):
        tree.make(name)
    agent.hold(dict(zip(map(tree.quota, GROUPS), QUOTAS["limits of pods"], strict=True)))
    tree.say({tree.quota(name): 90_000 for name in nested})
    tree.say({tree.quota(deep): 90_000})
    known = len(agent.state.originals)
    monkeypatch.setattr(executor, "_MOST_REMEMBERED", known + 10)
    assert agent.executor.lower(tree.quota(), 60_000) == 200_000
    assert len(agent.state.originals) == known + 10
    assert set(tree.said(*map(tree.quota, (*nested, deep)))) == {"-1"}
    monkeypatch.setattr(executor, "_MOST_REMEMBERED", known + 100)
    tree.say({tree.quota(deep): 50_000})
    assert agent.executor.lower(tree.quota(), 40_000) == 60_000
    assert tree.said(tree.quota(deep)) == ["-1"] and tree.quota(deep) not in agent.state.originals


@pytest.fixture
def deep(tree: V1Tree) -> Iterator[list[int]]:
    """Descriptors of cgroups that a container made below its own, deeper than a path may be long."""
    top = MOUNT / "cpu" / tree.cgroup("podp/c").lstrip("/")
    down = [os.open(top, os.O_RDONLY)]
    for _ in range(18):
        os.mkdir("d" * 250, dir_fd=down[-1])
        down.append(os.open("d" * 250, os.O_RDONLY, dir_fd=down[-1]))
    yield down
    for above, below in zip(down[-2::-1], down[:0:-1], strict=True):
        os.close(below)
        os.rmdir("d" * 250, dir_fd=above)
    os.close(down[0])


def test_a_cgroup_deeper_than_a_path_may_be_long(agent: Agent, tree: V1Tree, deep: list[int]) -> None:
    """Its larger quota is in the way of a smaller one above as any other's, and so it steps aside."""
    agent.hold({tree.quota(): 150_000})
    file = os.open("cpu.cfs_quota_us", os.O_RDWR, dir_fd=deep[-1])
    try:
        os.write(file, b"150000")
        agent.hold({tree.quota(): 20_000})
        assert os.pread(file, 64, 0) == b"-1\n"
        os.pwrite(file, b"20000", 0)
        assert agent.executor.lower(tree.quota(), 10_000) and tree.said(tree.quota()) == ["10000"]
    finally:
        os.close(file)


@pytest.mark.parametrize("below", ["podp/c/own", "podp/c"])
def test_a_shorter_period_of_a_container(agent: Agent, tree: V1Tree, below: str) -> None:
    """Two CPUs in a period of a millisecond: a smaller number than the quota above, and more than that allows."""
    agent.hold({tree.quota(): 200_000})
    if below.endswith("own"):
        tree.make_in("cpu", below)
    period = replace(tree.quota(below), file="cpu.cfs_period_us")
    tree.say({period: 1000})
    tree.say({tree.quota(below): 2000})
    assert agent.executor.lower(tree.quota(), 50_000) == 200_000 and agent.executor.failed_cuts == 0
    assert tree.said(tree.quota(), tree.quota(below)) == ["50000", "-1"]
    agent.hold({tree.quota(): 200_000})
    tree.say({tree.quota(below): 2000})
    agent.hold({tree.quota(): 200_000, tree.quota("podp"): 50_000})
    assert tree.said(tree.quota("podp"), tree.quota(below)) == ["50000", "-1"]


@pytest.mark.parametrize("most", [4096, 50])
def test_one_pods_cgroups_leave_no_originals_of_another_out(
    agent: Agent, tree: V1Tree, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """However many it makes below its own, whichever name comes first, and however few are remembered."""
    monkeypatch.setattr(executor, "_MOST_REMEMBERED", most)
    agent.hold({tree.quota(): 150_000})
    for number in range(300):
        tree.make_in("cpu", f"podp/c/n{number:03}")
        tree.say({tree.quota(f"podp/c/n{number:03}"): 50_000})
    tree.make_in("cpu", "podq/d/nested")
    tree.say({tree.quota("podq/d/nested"): 50_000})
    agent.hold({tree.quota(): 20_000})
    kept = [knob.cgroup for knob in agent.state.originals]
    assert tree.cgroup("podq/d/nested") in kept and len(kept) < 300
    agent.executor.restore()
    assert tree.said(tree.quota("podq/d/nested")) == ["50000"]


def test_a_cut_that_nothing_is_in_the_way_of(agent: Agent, tree: V1Tree) -> None:
    """Children that hold no more stay as they are, whatever was prepared; those without a quota are not touched."""
    agent.hold(dict(zip(map(tree.quota, GROUPS), QUOTAS["the root falls below one"], strict=True)))
    below = ((tree.quota("podp"), 150_000), (tree.quota("podq"), 45_000))
    assert agent.executor.lower(tree.quota(), 40_000, below) == 50_000
    assert tree.said(*map(tree.quota, ("", "podp", "podq"))) == ["40000", "-1", "20000"]
    tree.say({tree.quota("podq"): 35_000})
    assert agent.executor.lower(tree.quota(), 30_000, below) == 40_000
    assert tree.said(*map(tree.quota, ("", "podp", "podq"))) == ["30000", "-1", "-1"]
    assert agent.executor.read(tree.quota("podp")) == -1 and agent.executor.failed_cuts == 0


def test_what_was_planned_with_a_raise_that_is_dropped(agent: Agent, tree: V1Tree) -> None:
    """The brake cut in between: quotas below the root are too large now, which is no error."""
    wanted = {tree.quota(): 100_000, tree.quota("podp"): 60_000}
    agent.hold({tree.quota(): 50_000, tree.quota("podp"): -1})
    outcomes = agent.turn(wanted, lambda: agent.executor.lower(tree.quota(), 20_000) is None)
    assert [(outcome.error, outcome.dropped) for outcome in outcomes] == [("", True), ("", True)]
    assert tree.said(*wanted) == ["20000", "-1"]
    agent.hold(wanted)


def test_a_quota_binds(agent: Agent, tree: V1Tree) -> None:
    """A process that spins gets a tenth of a CPU, whatever its own limit says."""
    agent.hold({tree.quota(): 10_000, tree.shares(): 2})
    tree.run("podp/c", SPIN)
    usage = MOUNT / "cpuacct" / tree.root.lstrip("/") / "cpuacct.usage"
    before, began = int(usage.read_text()), time.monotonic()
    time.sleep(2)
    used, seconds = (int(usage.read_text()) - before) / 1e9, time.monotonic() - began
    assert used <= 0.1 * (seconds + 0.2)
    throttled = (MOUNT / "cpu" / tree.root.lstrip("/") / "cpu.stat").read_text().split()
    assert int(throttled[throttled.index("nr_throttled") + 1]) > 0


@needs_two_cpus
def test_a_cpu_list_binds(agent: Agent, tree: V1Tree) -> None:
    """A running process is moved."""
    pid = tree.run("podp/c", SPIN).pid
    for cpus in ("1", "0", "0-1"):
        agent.hold({tree.cpus(below): cpus for below in GROUPS})
        assert os.sched_getaffinity(pid) == set(parse_cpus(cpus))


def test_whole_pages(agent: Agent, tree: V1Tree) -> None:
    """The kernel keeps fewer bytes than it was told: that is kept, and not written again."""
    wanted = {tree.memory("podp"): 1_000_000, tree.memory("podq"): -1}
    assert [outcome.error for outcome in agent.turn(wanted)] == [""]
    assert tree.said(tree.memory("podp")) == ["999424"] and agent.turn(wanted) == []


DIRTY = """
import os
file, block = os.open(FILE, os.O_RDWR | os.O_CREAT, 0o600), bytes(1 << 16)
while True:
    for place in range(0, 256 << 20, 1 << 16):
        os.pwrite(file, block, place)
"""


@pytest.mark.timeout(240)
def test_a_memory_limit_of_who_dirties_pages_all_the_time(agent: Agent, tree: V1Tree, tmp_path: Path) -> None:
    """Written in one go it waits until that one ends, and with it the limits of everybody else."""
    hog, second = tree.memory("podp"), tree.memory("podq")
    usage = MOUNT / "memory" / tree.cgroup("podp").lstrip("/") / "memory.usage_in_bytes"
    for number in range(2):
        tree.run("podp", f"FILE = {str(tmp_path / f'dirty{number}')!r}{DIRTY}")
    deadline = time.monotonic() + 100
    while int(usage.read_text()) < 300 * MI and time.monotonic() < deadline:
        time.sleep(0.05)
    wanted: dict[Knob, Value] = {hog: 32 * MI, second: 64 * MI}
    path = agent.executor.path(hog)
    refused = {
        f"{path}: Device or resource busy",
        f"{path}: it holds more that cannot be dropped; the limit is at that, and comes down with it",
    }
    while agent.executor.read(hog) != 32 * MI and time.monotonic() < deadline:
        # A slow disk frees not even a step before the kernel gives up: that is told, and tried again.
        assert {outcome.error for outcome in agent.turn(wanted) if outcome.error} <= refused
        assert agent.executor.read(second) == 64 * MI
    assert {knob: agent.executor.read(knob) for knob in wanted} == wanted


WAITING = """
open(f"{GO}-held", "w").close()
while not os.path.exists(GO):
    time.sleep(0.05)
"""
PIPES = f"""
import fcntl, os, time
held = []
def more(count):
    for _ in range(count):
        pipe = os.pipe()
        fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 1 << 20)
        for _ in range(16):
            os.write(pipe[1], bytes(1 << 16))
        held.append(pipe)
more(32)
{WAITING}
more(1000)
"""
SPLICED = f"""
import fcntl, os, time
file = os.open(f"{{GO}}-file", os.O_RDWR | os.O_CREAT)
os.write(file, bytes({32 * MI}))
os.fsync(file)
held = []
for offset in range(0, {32 * MI}, {MI}):
    pipe = os.pipe()
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, {MI})
    os.splice(file, pipe[1], {MI}, offset_src=offset)
    held.append(pipe)
{WAITING}
held.append(bytearray(b"x" * {1000 * MI}))
"""
HELD = {
    "anonymous": f"import os, time\nheld = bytearray(b'x' * {32 * MI})\n{WAITING}\nheld += bytes({1000 * MI})",
    "kernel memory": PIPES,
    "pages of a file in pipes": SPLICED,
}


@pytest.mark.parametrize("code", HELD.values(), ids=HELD.keys())
def test_a_memory_limit_below_what_is_in_use(agent: Agent, tree: V1Tree, tmp_path: Path, code: str) -> None:
    """The kernel would refuse it: what is held becomes the limit, nobody is killed for it, and nobody has more."""
    go = tmp_path / "go"
    process = tree.run("podp/c", f"GO = {str(go)!r}\n{code}")
    deadline = time.monotonic() + 60
    while not go.with_name("go-held").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    wanted: dict[Knob, Value] = {tree.memory("podp"): 8 * MI}
    agent.turn(wanted)
    outcomes = agent.turn(wanted)
    assert "comes down with it" in outcomes[0].error
    held = int(tree.said(tree.memory("podp"))[0])
    assert 32 * MI < held < 96 * MI and process.poll() is None
    go.touch()
    process.wait(60)
    assert process.returncode == -signal.SIGKILL
    # Pages of a file that are being written go a moment after the process: each turn takes what is free by then.
    agent.turn(wanted)
    deadline = time.monotonic() + 30
    while tree.said(tree.memory("podp")) != [str(8 * MI)] and time.monotonic() < deadline:
        time.sleep(0.1)
        agent.turn(wanted)
    assert tree.said(tree.memory("podp")) == [str(8 * MI)]


@contextlib.contextmanager
def writes_of(path: Path) -> Iterator[list[str]]:
    """How often this process opens the file to write it."""
    opened: list[str] = []
    watched = [str(path)]

    def note(event: str, details: tuple[object, ...]) -> None:
        if event == "open" and details[0] in watched and isinstance(details[2], int) and details[2] & os.O_WRONLY:
            opened.append(str(details[0]))

    sys.addaudithook(note)
    try:
        yield opened
    finally:
        # No hook can be taken away again.
        watched.clear()


def test_a_step_that_is_refused_is_the_last_of_its_tick(agent: Agent, tree: V1Tree, tmp_path: Path) -> None:
    """All at once the kernel would try on and on where pages are dirtied; these are in pipes and cannot be freed."""
    knob, go = tree.memory("podp"), tmp_path / "go"
    tree.run("podp/c", f"GO = {str(go)!r}\n{SPLICED}")
    deadline = time.monotonic() + 60
    while not go.with_name("go-held").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    agent.turn({knob: 8 * MI})
    with writes_of(agent.executor.path(knob)) as writes:
        outcomes = agent.turn({knob: 8 * MI})
    assert "comes down with it" in outcomes[0].error
    assert len(writes) == 1


RESETS = {
    "as a daemon-reload does": {"quota": -1, "shares": 1024, "memory": -1},
    "a little looser": {"quota": 60_000, "shares": 3, "memory": 80 * MI},
}


@pytest.mark.parametrize("reset", RESETS.values(), ids=RESETS.keys())
def test_what_somebody_loosened_is_repaired(agent: Agent, tree: V1Tree, reset: dict[str, int]) -> None:
    """By the next turn, each time."""
    wanted = {tree.quota(): 50_000, tree.shares(): 2, tree.memory("podp"): 64 * MI, tree.quota("podp"): 40_000}
    agent.hold(wanted)
    for _ in range(3):
        tree.say({tree.quota(): reset["quota"], tree.shares(): reset["shares"], tree.memory("podp"): reset["memory"]})
        agent.hold(wanted)
        assert agent.turn(wanted) == []


def test_what_somebody_tightened_stays(agent: Agent, tree: V1Tree) -> None:
    """Until they write something looser than ours: from then on ours holds."""
    wanted: dict[Knob, Value] = {tree.memory("podp"): 64 * MI, tree.quota("podp"): 40_000}
    agent.hold(wanted)
    tree.say({tree.memory("podp"): 16 * MI, tree.quota("podp"): 5000})
    for _ in range(3):
        assert agent.turn(wanted) == []
    tree.say({tree.memory("podp"): 32 * MI, tree.quota("podp"): -1})
    agent.turn(wanted)
    assert tree.said(*wanted) == [str(32 * MI), "40000"]
    tree.say({tree.memory("podp"): 96 * MI})
    agent.hold(wanted)


def test_a_cgroup_that_ends_between_reading_and_writing(agent: Agent, tree: V1Tree) -> None:
    """That pod's writes come to nothing, without an error, also later; all others are made."""
    wanted = {
        tree.quota(): 50_000,
        tree.quota("podp"): 40_000,
        tree.memory("podp"): 64 * MI,
        tree.quota("podq"): 30_000,
    }
    outcomes = agent.turn(wanted, lambda: tree.rmdir("podp"))
    assert {(outcome.write.knob, outcome.error, outcome.dropped) for outcome in outcomes} == {
        (tree.quota(), "", False),
        (tree.quota("podp"), "", True),
        (tree.memory("podp"), "", False),
        (tree.quota("podq"), "", False),
    }


READ_ONLY = """
import json, sys
from pathlib import Path
from agent.core.observe.observation import Knob
from agent.core.limit.plan import Write
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.reason import Reason

knob = Knob(sys.argv[1], "cpu", "cpu.cfs_quota_us")
executor = KnobExecutor(Path("/sys/fs/cgroup"), StateFile(Path(sys.argv[2])))
decision = Decision(knob.subject, knob.file, 5000, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", 5000),))
outcome = executor.apply((Write(knob, 5000, -1, decision),), 0)[0]
print(json.dumps([outcome.error, executor.lower(knob, 4000), executor.failed_cuts, executor.read(knob)]))
"""


def test_a_read_only_hierarchy(tree: V1Tree, tmp_path: Path) -> None:
    """As in a container that mounts it so: an outcome that says it, a cut that is counted, never an exception."""
    remount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    program = [sys.executable, "-c", READ_ONLY, tree.root, str(tmp_path / "agent.json")]
    command = ["unshare", "--mount", "sh", "-c", remount, str(MOUNT / "cpu"), *program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "unshare" in done.stderr:
        pytest.skip(f"needs a mount namespace of its own: {done.stderr.strip()}; run with CAP_SYS_ADMIN")
    error, lowered, failed, held = json.loads(done.stdout)
    assert "cpu.cfs_quota_us: Read-only file system" in error and (lowered, failed, held) == (None, 1, -1)


def test_a_local_user_keeps_no_agent_from_starting(tree: V1Tree) -> None:
    """Every user may open a cgroup's directory and lock it: that is not the agent's lock."""
    folder = MOUNT / "cpu" / tree.root.lstrip("/")
    become = "import os, sys, fcntl; os.setgroups([]); os.setgid(65534); os.setuid(65534)"
    lock = "fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); print('locked', flush=True); input()"
    command = [sys.executable, "-c", f"{become}; {lock}", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None and user.stdout.readline() == "locked\n"
        NodeLock(folder).close()
        user.communicate("\n", timeout=60)


def test_a_second_agent_refuses(tree: V1Tree) -> None:
    """The lock is on the cgroup's identity, and does not keep it from being removed."""
    folder = MOUNT / "cpu" / tree.root.lstrip("/")
    lock = NodeLock(folder)
    code = f"from agent.edge.nodelock import NodeLock; from pathlib import Path; NodeLock(Path({str(folder)!r}))"
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ConfigurationFault.__name__ in second.stderr and "another agent limits these cgroups" in second.stderr
    tree.rmdir("")
    lock.close()
    tree.make("")


def planned(knob: Knob, value: int) -> Write:
    decision = Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", value),))
    return Write(knob, value, -1, decision)


def test_a_refused_value_is_an_outcome(agent: Agent, tree: V1Tree) -> None:
    """Less than a millisecond; the file and the kernel's words are named, the rest goes on."""
    writes = (planned(tree.quota(), 999), planned(tree.quota("podp"), 40_000))
    refused, kept = agent.executor.apply(writes, 0)
    assert "cpu.cfs_quota_us: Invalid argument" in refused.error and kept.error == ""
    assert tree.said(tree.quota(), tree.quota("podp")) == ["-1", "40000"]
