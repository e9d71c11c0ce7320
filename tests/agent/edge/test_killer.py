"""Everything in one best-effort cgroup is hit, and nothing else ever."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.observe.layout import Layout
from agent.edge.killer import Killer

ROOT = Path("/sys/fs/cgroup")
POD = "/kubepods/besteffort/poda"
FORKS = "import os, time\nfor _ in range(7): os.fork()\ntime.sleep(600)"
HEADLESS = (
    "import ctypes, threading, time\n"
    "threading.Thread(target=time.sleep, args=[600]).start()\n"
    "ctypes.CDLL(None).syscall(60, 0)"
)
"""Its first thread ends, by exit(2) of x86_64."""
TRACED = (
    "import ctypes, mmap, time\n"
    "held = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
    "held.write(b'1' * len(held))\n"
    "ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)\n"
    "time.sleep(600)"
)
"""Whoever likes may trace it (PR_SET_PTRACER)."""
TRACER = (
    "import ctypes, time\n"
    "libc = ctypes.CDLL(None)\n"
    "libc.ptrace.argtypes = [ctypes.c_long] * 4\n"
    "print(libc.ptrace(0x4206, {process}, 0, 0x40), flush=True)\n"
    "time.sleep(600)"
)
"""It is told before its process ends (PTRACE_SEIZE, PTRACE_O_TRACEEXIT), and lets it go on once it ends itself."""
_CLONE3 = 435
HIERARCHIES = {"v1": (1, ROOT / "memory", ROOT), "v2": (2, ROOT / "unified", ROOT / "unified")}

needs_cgroups = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(ROOT / "memory" / "cgroup.procs", os.W_OK),
    reason="needs root and writable cgroup v1 beside the unified tree",
)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Tree:
    """kubepods below our own name in one hierarchy, and the processes we put there."""

    def __init__(self, version: int, mount: Path, root: Path) -> None:
        self.layout = Layout(f"/sublet-test-{secrets.token_hex(4)}/kubepods", version)
        self.top = mount / self.layout.root.lstrip("/")
        self.root = root
        self.killer = Killer(root, self.layout)
        self._mount = mount
        self._processes: list[subprocess.Popen[bytes]] = []

    def pod(self, path: str) -> str:
        """The cgroup's path as the layout writes it."""
        (self.top / path).mkdir(parents=True, exist_ok=True)
        return f"{self.layout.root}/{path}"

    def start(self, path: str, program: str = "import time\ntime.sleep(600)") -> subprocess.Popen[bytes]:
        """A process that joins the cgroup before it does anything."""
        self.pod(path)
        process = subprocess.Popen([sys.executable, "-c", f"input()\n{program}"], stdin=subprocess.PIPE)
        self._processes.append(process)
        (self.top / path / "cgroup.procs").write_text(str(process.pid))
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        return process

    def members(self, path: str) -> set[int]:
        return set(map(int, (self.top / path / "cgroup.procs").read_text().split()))

    def remove(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        base = self._mount / self.layout.root.split("/")[1]
        assert until(lambda: not any(p.read_text() for p in base.rglob("cgroup.procs")))
        for folder in (*sorted(base.rglob("*/"), key=lambda p: -len(p.parts)), base):
            folder.rmdir()


@pytest.fixture(params=HIERARCHIES)
def tree(request: pytest.FixtureRequest) -> Iterator[Tree]:
    version, mount, root = HIERARCHIES[request.param]
    if not (mount / "cgroup.procs").exists():
        pytest.skip(f"needs {mount}")
    made = Tree(version, mount, root)
    yield made
    made.remove()


@needs_cgroups
@pytest.mark.kernel
def test_every_process_of_the_pod_and_no_other(tree: Tree) -> None:
    """All containers at all depths; neither another pod nor an online one."""
    victims = [tree.start(f"besteffort/poda/{container}") for container in ("c1", "c2", "c2/inner")]
    others = [tree.start("besteffort/podab/c1"), tree.start("burstable/podb/c1")]
    assert tree.killer.processes(tree.pod("besteffort/poda")) == {victim.pid for victim in victims}
    assert tree.killer(tree.pod("besteffort/poda")) == 3
    assert [victim.wait(20) for victim in victims] == [-9, -9, -9]
    assert [other.poll() for other in others] == [None, None]
    assert tree.killer.processes(tree.pod("besteffort/poda")) == set()
    assert tree.killer(tree.pod("besteffort/poda")) == 0, "the dead are not counted again"


@needs_cgroups
@pytest.mark.kernel
def test_who_is_traced_keeps_no_memory(tree: Tree) -> None:
    """It stands still on its way out, for as long as its tracer likes: two that trace each other for ever."""
    victim = tree.start("besteffort/poda/c", TRACED)
    assert until(lambda: resident_bytes(victim.pid) > 32 << 20)
    program = [sys.executable, "-c", TRACER.format(process=victim.pid)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as tracer:
        try:
            assert tracer.stdout is not None and tracer.stdout.readline() == b"0\n"
            assert tree.killer(tree.pod("besteffort/poda")) == 1
            assert until(lambda: resident_bytes(victim.pid) < 1 << 20)
            assert tree.killer.processes(tree.pod("besteffort/poda")) == {victim.pid}
        finally:
            tracer.kill()
    assert victim.wait(20) == -9


@needs_cgroups
@pytest.mark.kernel
def test_many_processes_within_milliseconds(tree: Tree) -> None:
    """128 of one pod; the call does not wait for them to be reaped."""
    first = tree.start("besteffort/poda/c", FORKS)
    assert until(lambda: len(tree.members("besteffort/poda/c")) == 128)
    began = time.monotonic()
    reached = tree.killer(tree.pod("besteffort/poda"))
    spent = time.monotonic() - began
    assert reached == 128 and spent < 1
    assert first.wait(20) == -9 and until(lambda: not tree.members("besteffort/poda/c"))


@needs_cgroups
@pytest.mark.kernel
def test_more_cgroups_than_are_looked_into(tree: Tree) -> None:
    """A container may make hundreds below its own, and put a process into the last: it is found all the same."""
    for number in range(400):
        tree.pod(f"besteffort/poda/c/{number:04}")
    deep = tree.start("besteffort/poda/c/0399/deep")
    other = tree.start("besteffort/podab/c1")
    assert tree.killer.processes(tree.pod("besteffort/poda")) == {deep.pid}
    assert tree.killer(tree.pod("besteffort/poda")) == 1
    assert deep.wait(20) == -9 and other.poll() is None
    assert tree.killer.processes(tree.pod("besteffort/poda")) == set()


@needs_cgroups
@pytest.mark.kernel
def test_a_process_whose_first_thread_has_ended(tree: Tree) -> None:
    """Of cgroup v1 /proc tells that it is at the top; another thread of it lives on, in one of hundreds of cgroups."""
    for number in range(400):
        tree.pod(f"besteffort/poda/c/{number:04}")
    headless = tree.start("besteffort/poda/c/0399/deep", HEADLESS)
    assert until(lambda: Path(f"/proc/{headless.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert tree.killer.processes(tree.pod("besteffort/poda")) == {headless.pid}
    assert tree.killer(tree.pod("besteffort/poda")) == 1
    assert headless.wait(20) == -9 and tree.killer.processes(tree.pod("besteffort/poda")) == set()


@needs_cgroups
@pytest.mark.kernel
def test_a_number_that_is_another_s_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod's process ends between being read and being killed, and somebody else's has its number."""
    tree = Tree(*HIERARCHIES["v1"])
    ended, other, judged = tree.start("besteffort/poda/c"), list[int](), Killer._is_kernel_thread

    def meanwhile(killer: Killer, process: int) -> bool:
        if process == ended.pid and not other:
            ended.kill()
            ended.wait()
            other.append(started_as(process))
        return judged(killer, process)

    monkeypatch.setattr(Killer, "_is_kernel_thread", meanwhile)
    try:
        assert tree.killer(tree.pod("besteffort/poda")) == 0
        assert other == [ended.pid] and os.waitpid(ended.pid, os.WNOHANG) == (0, 0), "it lives"
    finally:
        for process in other:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        tree.remove()


@needs_cgroups
@pytest.mark.kernel
def test_a_process_that_looking_misses(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """It moves between cgroups of its own, and is in none of them as that is looked into."""
    moving = tree.start("besteffort/poda/c/a")
    monkeypatch.setattr(Killer, "_members", lambda killer, cgroup: set())
    assert tree.killer(tree.pod("besteffort/poda")) == 1
    assert moving.wait(20) == -9


def started_as(process: int) -> int:
    """A process of that number, in our own cgroup: clone3(2) as fork(2), with set_tid."""
    numbers = (ctypes.c_int32 * 1)(process)
    wanted = (ctypes.c_uint64 * 10)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(numbers), 1)
    made = int(ctypes.PyDLL(None).syscall(_CLONE3, wanted, ctypes.sizeof(wanted)))
    if made == 0:
        os.execv("/bin/sleep", ["sleep", "600"])
    return made


@needs_cgroups
@pytest.mark.kernel
@pytest.mark.skipif(not (ROOT / "pids").is_dir(), reason="needs the v1 controller of processes")
@pytest.mark.parametrize("end", ["\x0c", "\x1e", "\r", "\x85", "\u2028"])
def test_a_cgroup_named_like_a_line_of_proc(end: str) -> None:
    """In another hierarchy, which /proc tells of first: only a newline ends a line there, and no name has one."""
    tree = Tree(*HIERARCHIES["v1"])
    for number in range(400):
        tree.pod(f"besteffort/poda/c/{number:04}")
    hidden = tree.start("besteffort/poda/c/0399/deep")
    base = ROOT / "pids" / tree.layout.root.split("/")[1]
    forged = ROOT / "pids" / f"{tree.layout.root}/besteffort/poda/c/x{end}4:memory:/elsewhere".lstrip("/")
    forged.mkdir(parents=True)
    try:
        (forged / "cgroup.procs").write_text(str(hidden.pid))
        assert tree.killer.processes(tree.pod("besteffort/poda")) == {hidden.pid}
        assert tree.killer(tree.pod("besteffort/poda")) == 1 and hidden.wait(20) == -9
    finally:
        tree.remove()
        for folder in (forged, *forged.parents):
            folder.rmdir()
            if folder == base:
                break


@needs_cgroups
@pytest.mark.kernel
@pytest.mark.skipif(not (ROOT / "freezer").is_dir(), reason="needs the v1 freezer")
@pytest.mark.parametrize(("names", "beside"), [(["ice"], 0), (["ice"], 400), (["i" * 250] * 18, 0)])
def test_a_process_that_froze_itself_ends(names: list[str], beside: int) -> None:
    """In a v1 cgroup that it made below its own, where a signal waits for as long as it is frozen: beside hundreds of
    others, and deeper than a path may be long."""
    tree = Tree(*HIERARCHIES["v1"])
    frozen = tree.start("besteffort/poda/c")
    base = ROOT / "freezer" / tree.layout.root.split("/")[1]
    container = ROOT / "freezer" / f"{tree.layout.root}/besteffort/poda/c".lstrip("/")
    container.mkdir(parents=True)
    for number in range(beside):
        (container / f"{number:04}").mkdir()
    down = [os.open(container, os.O_RDONLY)]
    for name in names:
        os.mkdir(name, dir_fd=down[-1])
        down.append(os.open(name, os.O_RDONLY, dir_fd=down[-1]))
    here = f"/proc/self/fd/{down[-1]}"
    try:
        Path(here, "cgroup.procs").write_text(str(frozen.pid))
        Path(here, "freezer.state").write_text("FROZEN")
        assert until(lambda: Path(here, "freezer.state").read_text().strip() == "FROZEN")
        assert tree.killer(tree.pod("besteffort/poda")) == 1
        assert until(lambda: frozen.poll() == -9), "it is still frozen"
    finally:
        Path(here, "freezer.state").write_text("THAWED")
        tree.remove()
        for above, below, name in zip(down[-2::-1], down[:0:-1], reversed(names), strict=True):
            os.close(below)
            os.rmdir(name, dir_fd=above)
        os.close(down[0])
        for folder in (*container.glob("[0-9]*/"), container, *container.parents):
            folder.rmdir()
            if folder == base:
                break


@needs_cgroups
@pytest.mark.kernel
def test_it_never_kills_itself(tree: Tree) -> None:
    """Found in a best-effort cgroup, the killer ends its neighbours and lives."""
    cgroup = tree.pod("besteffort/poda")
    program = (
        "import sys\nfrom pathlib import Path\nfrom agent.core.observe.layout import Layout\nfrom agent.edge.killer import Killer\n"
        f"reached = Killer(Path({str(tree.root)!r}), Layout({tree.layout.root!r}, {tree.layout.version}))({cgroup!r})\n"
        "sys.exit(40 + reached)"
    )
    neighbour = tree.start("besteffort/poda/c")
    assert tree.start("besteffort/poda/agent", program).wait(60) == 41
    assert neighbour.wait(20) == -9


PATHS = {
    "an online pod": "/kubepods/burstable/poda",
    "a guaranteed pod": "/kubepods/poda",
    "all of best effort": "/kubepods/besteffort",
    "all of best effort, with a slash": "/kubepods/besteffort/",
    "a way out": "/kubepods/besteffort/../burstable/poda",
    "a way round": "/kubepods/besteffort/poda/./c",
    "a name alike": "/kubepods/besteffort-else/poda",
    "no leading slash": "kubepods/besteffort/poda",
    "two slashes": "/kubepods/besteffort//poda",
    "everything": "/",
    "nothing": "",
}


class Folders:
    """Plain files for a cgroup tree, and one real process that may be hit."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.proc = folder / "cgroup", folder / "proc"
        self.process = subprocess.Popen(["sleep", "600"])
        self.killer = Killer(self.tree, Layout("/kubepods", 2), self.proc)

    def put(self, cgroup: str, content: str) -> None:
        where = self.tree / cgroup.lstrip("/")
        where.mkdir(parents=True, exist_ok=True)
        (where / "cgroup.procs").write_text(content)

    def flags(self, flags: int) -> None:
        """The process' /proc/PID/stat, its name as nasty as a name may be."""
        where = self.proc / str(self.process.pid)
        where.mkdir(parents=True)
        (where / "stat").write_text(f"{self.process.pid} (a) b (c) S 2 0 0 0 -1 {flags} 0 0\n")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Folders]:
    made = Folders(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_path_that_is_not_below_best_effort_is_refused(folders: Folders, path: str) -> None:
    """Nothing is hit, the refusal is counted, and the brake's thread lives on."""
    for cgroup in (
        "/",
        "/kubepods",
        "/kubepods/poda",
        "/kubepods/besteffort",
        POD,
        f"{POD}/c",
        "/kubepods/burstable/poda",
    ):
        folders.put(cgroup, f"{folders.process.pid}\n")
    assert folders.killer(path) == 0
    assert folders.killer.refused == 1 and folders.process.poll() is None


def test_a_process_deeper_than_calls_may_nest(folders: Folders) -> None:
    """Whoever may make cgroups below a pod's could else end the brake's thread, which kills as a last resort."""
    folders.put(POD, "")
    deep = [folders.tree / POD.lstrip("/")]
    try:
        for _ in range(sys.getrecursionlimit() + 100):
            deep.append(deep[-1] / "a")
            deep[-1].mkdir()
        (deep[-1] / "cgroup.procs").write_text(f"{folders.process.pid}\n")
        told = folders.proc / str(folders.process.pid) / "cgroup"
        told.parent.mkdir(parents=True)
        told.write_text(f"0::/{deep[-1].relative_to(folders.tree)}\n")
        assert folders.killer.processes(POD) == {folders.process.pid}
        assert folders.killer(POD) == 1 and folders.process.wait(20) == -9
    finally:
        # Who removes a test's files calls itself for each level, too.
        (deep[-1] / "cgroup.procs").unlink(missing_ok=True)
        for folder in reversed(deep[1:]):
            folder.rmdir()


MEMBERS = {
    "init": "1\n",
    "of another namespace": "0\n0\n",
    "gone": "4194304\n",
    "empty": "",
    "unreadable": "what\n",
}


@pytest.mark.parametrize("content", MEMBERS.values(), ids=MEMBERS)
def test_who_is_never_hit(folders: Folders, content: str) -> None:
    """Not init, not our own process group by number 0; what has vanished is not counted."""
    folders.put(POD, content)
    assert folders.killer(POD) == 0 and folders.killer.refused == 0


def test_a_kernel_thread_is_spared(folders: Folders) -> None:
    """By its flags, whatever its name."""
    folders.put(POD, f"{folders.process.pid}\n")
    folders.flags(0x0020_8040)
    assert folders.killer(POD) == 0 and folders.process.poll() is None
    (folders.proc / str(folders.process.pid) / "stat").write_text("1 (x) S 1 0 0 0 -1 4194304 0\n")
    assert folders.killer(POD) == 1 and folders.process.wait(20) == -9


def test_the_kernels_own_kill_has_no_answer(folders: Folders) -> None:
    """It waits for a lock that best effort may hold, as a pipe does for whoever reads it: each process is sent a signal
    meanwhile."""
    folders.put(POD, f"{folders.process.pid}\n")
    pipe = folders.tree / POD.lstrip("/") / "cgroup.kill"
    os.mkfifo(pipe)
    killed = threading.Thread(target=folders.killer, args=[POD], daemon=True)
    killed.start()
    try:
        assert folders.process.wait(20) == -9
        killed.join(20)
        assert not killed.is_alive()
    finally:
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))


def test_the_kernels_own_kill_answers_late(folders: Folders) -> None:
    """Whom it ended before anybody could be sent a signal was reached: the pod is evicted, and no other dies for it."""
    folders.put(POD, f"{folders.process.pid}\n")
    pipe = folders.tree / POD.lstrip("/") / "cgroup.kill"
    os.mkfifo(pipe)

    def clock() -> float:
        """Asked as the signals begin."""
        folders.put(POD, "")
        return 0.0

    try:
        assert Killer(folders.tree, Layout("/kubepods", 2), folders.proc, clock)(POD) == 1
    finally:
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))


def test_a_cgroup_that_is_gone(folders: Folders) -> None:
    """Is no error."""
    assert folders.killer(POD) == 0 and folders.killer.refused == 0


def test_a_fork_storm_is_left_after_the_bound(folders: Folders) -> None:
    """New processes each time it looks: it stops once its time is over."""
    calls = iter(range(100))

    def clock() -> float:
        """Each look takes a millisecond; the cgroup holds another number each time."""
        tick = next(calls)
        folders.put(POD, f"{4194304 + tick}\n")
        return tick / 1000

    killer = Killer(folders.tree, Layout("/kubepods", 2), folders.proc, clock)
    assert killer(POD) == 0
    assert 4 <= next(calls) <= 10


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")
def test_a_refused_signal_is_counted(folders: Folders) -> None:
    """Without CAP_KILL nothing is reached, and a number tells."""
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        folders.tree = Path(open_to_all)
        folders.put(POD, f"{folders.process.pid}\n")
        assert _as_nobody(Killer(folders.tree, Layout("/kubepods", 2))) == (0, 1)
    assert folders.process.poll() is None


def _as_nobody(killer: Killer) -> tuple[int, int]:
    """What the killer says in a child that is another user."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.setuid(65534)
            os.write(write, bytes((killer(POD), killer.failed_signals)))
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    answer = os.read(read, 2)
    os.close(read)
    return answer[0], answer[1]
