"""Reading through cached descriptors: what is read when, and what absence, garbage and shortage become."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil
import pytest

from agent.core.observe.files import FILES, V1_FILES, V2_FILES, FilePart, Role, Watched
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    CpuThrottling,
    DiskBytes,
    MemoryEvents,
    Missing,
    Stall,
)
from agent.edge.cgroupfs import CgroupReader
from model.fault import KernelFault

MIB = 1 << 20
POD = "/kubepods/burstable/podx"
STAT = (
    "{0}inactive_anon 1\n{0}active_anon 2\n{0}inactive_file 16\n{0}active_file 32\n{0}unevictable 4\n"
    "{0}workingset_refault_anon 1\n{0}workingset_refault_file 10\n"
)
PSI = "some avg10=1.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
PRESSURE = CgroupPressure(*[Stall(1.0, 0.0, 0.0, 9), Stall()] * 3)
V1_TEXTS = {
    "cpuacct/cpuacct.usage": "5\n",
    "memory/memory.usage_in_bytes": f"{100 * MIB}\n",
    "memory/memory.stat": STAT.format("total_"),
    "memory/memory.limit_in_bytes": f"{200 * MIB}\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory/memory.failcnt": "6\n",
    "cpu/cpu.stat": "nr_periods 4\nnr_throttled 1\nthrottled_time 9000\n",
    "cpuset/cpuset.cpus": "0-3\n",
    "cpu/cpu.cfs_quota_us": "50000\n",
    "cpu/cpu.cfs_period_us": "20000\n",
    "pids/pids.current": "70\n",
    "pids/pids.max": "max\n",
    "unified/cpu.pressure": PSI,
    "unified/memory.pressure": PSI,
    "unified/io.pressure": PSI,
    "blkio/blkio.throttle.io_service_bytes_recursive": "8:0 Read 7\n8:0 Write 8\n8:0 Total 15\nTotal 15\n",
}
V2_TEXTS = {
    "cpu.stat": "usage_usec 5\nuser_usec 5\nsystem_usec 0\nnr_periods 4\nnr_throttled 1\nthrottled_usec 9\n",
    "memory.current": f"{100 * MIB}\n",
    "memory.max": f"{200 * MIB}\n",
    "memory.stat": f"anon 3\n{STAT.format('')}slab_reclaimable 900\nslab 1000\n",
    "memory.events.local": "low 0\nhigh 1\nmax 6\noom 3\noom_kill 2\n",
    "memory.events": "low 0\nhigh 1\nmax 6\noom 3\noom_kill 2\n",
    "cpuset.cpus.effective": "0-3\n",
    "cpu.max": "50000 20000\n",
    "pids.current": "70\n",
    "pids.max": "max\n",
    "cpu.pressure": PSI,
    "memory.pressure": PSI,
    "io.pressure": PSI,
    "io.stat": "8:0 rbytes=7 wbytes=8 rios=1 wios=1 dbytes=0 dios=0\n",
}
WHOLE = {
    1: CgroupSample(5, 7, 48, CpuThrottling(4, 1, 9), PRESSURE, MemoryEvents(0, 6, 0, 2), DiskBytes(7, 8)),
    2: CgroupSample(5000, 7, 48, CpuThrottling(4, 1, 9), PRESSURE, MemoryEvents(1, 6, 3, 2), DiskBytes(7, 8)),
}


def whole(version: int, role: Role) -> CgroupSample:
    """Of a root also the whole charge, of a pod what the kernel holds for it: neither memory, cache nor droppable; and
    what of it should be droppable."""
    pod = role in (Role.POD, Role.BEST_EFFORT_POD)
    kernel = 100 * MIB - 7 - 48 - (900 if version == 2 else 0)
    charge = 100 * MIB if role is Role.ROOT else None
    return msgspec.structs.replace(
        WHOLE[version],
        charge_bytes=charge,
        kernel_bytes=kernel if pod else 0,
        kernel_caches_bytes=900 if pod and version == 2 else 0,
    )


class Tree:
    """A made cgroup tree, and the reader's view of it; counts what is read by file name."""

    def __init__(self, root: Path, version: int = 1) -> None:
        self.root = root
        self.texts = V1_TEXTS if version == 1 else V2_TEXTS
        self.version = version
        self.reads: Counter[str] = Counter()
        self.refuse: Callable[[str], int] = lambda _path: 0

    def reader(self, slow_passes: int = 10, descriptors: int = 1000) -> CgroupReader:
        return CgroupReader(self.root, FILES[self.version], slow_passes, descriptors, self.pread)

    def pread(self, descriptor: int, size: int, offset: int) -> bytes:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink()) if descriptor >= 0 else ""
        if path and self.refuse(path):
            raise OSError(self.refuse(path), os.strerror(self.refuse(path)))
        text = os.pread(descriptor, size, offset)
        self.reads[path.rsplit("/", 1)[-1]] += 1
        return text

    def path(self, cgroup: str, name: str) -> Path:
        mount, _, file = name.rpartition("/")
        return self.root / mount / cgroup.lstrip("/") / file

    def write(self, cgroup: str, name: str, text: str) -> None:
        path = self.path(cgroup, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def make(self, cgroup: str, texts: Mapping[str, str] | None = None) -> None:
        for name, text in (texts or self.texts).items():
            self.write(cgroup, name, text)

    def remove(self, cgroup: str) -> None:
        for folder in {self.path(cgroup, name).parent for name in self.texts}:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> Tree:
    return Tree(tmp_path, request.param)


@pytest.fixture
def v1(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    before = psutil.Process().num_fds()
    yield
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("role", list(Role))
def test_a_new_cgroup_is_read_completely_at_once(tree: Tree, role: Role) -> None:
    """Every part, whatever its cadence; the next pass has the same."""
    tree.make(POD)
    reader = tree.reader()
    reader.place({POD: role})
    assert reader.read() == {POD: whole(tree.version, role)} == reader.read()
    assert reader.cpus(POD) == (4 if role is Role.ROOT else None)
    assert reader.quota_millis(POD) == (2500 if role is Role.ROOT else None)
    assert reader.memory_limit(POD) == (200 * MIB if role is Role.ROOT else None)
    assert reader.refaulted(POD) == 11
    of_root = 7 if role is Role.ROOT else None
    assert reader.limit_hits(POD) == (of_root if tree.version == 2 else 6)
    assert reader.pids(POD) == ((70, None) if role is Role.ROOT else (None, None))
    reader.close()
    assert reader.open_descriptors == 0


def passes(tree: Tree, role: Role, count: int) -> Counter[str]:
    """What `count` passes after the first read."""
    tree.make(POD)
    reader = tree.reader()
    reader.place({POD: role})
    reader.read()
    tree.reads.clear()
    for _ in range(count):
        reader.read()
    reader.close()
    return tree.reads


@pytest.mark.parametrize(
    ("role", "every", "slow"),
    [
        (
            Role.POD,
            ("cpuacct.usage", "memory.usage_in_bytes"),
            ("memory.stat", "cpu.stat", "memory.oom_control", "memory.failcnt", "cpu.pressure", "io.pressure"),
        ),
        (
            Role.BEST_EFFORT_POD,
            ("cpuacct.usage", "cpu.stat", "memory.usage_in_bytes"),
            ("memory.stat", "memory.pressure"),
        ),
        (Role.CONTAINER, (), ("memory.stat", "cpu.stat", "blkio.throttle.io_service_bytes_recursive")),
        (Role.ROOT, ("cpuacct.usage", "memory.stat", "cpu.stat", "cpu.pressure", "cpuset.cpus"), ()),
    ],
)
def test_cadence_on_v1(v1: Tree, role: Role, every: tuple[str, ...], slow: tuple[str, ...]) -> None:
    """In twenty passes of rounds of ten a slow file is read twice."""
    reads = passes(v1, role, 20)
    assert {name: reads[name] for name in every} == dict.fromkeys(every, 20)
    assert {name: reads[name] for name in slow} == dict.fromkeys(slow, 2)


def test_cadence_on_v2(tmp_path: Path) -> None:
    """One file has usage and throttling."""
    reads = passes(Tree(tmp_path, 2), Role.POD, 20)
    assert (reads["cpu.stat"], reads["memory.current"], reads["memory.stat"], reads["memory.events"]) == (20, 20, 2, 2)


@pytest.mark.parametrize(("version", "file"), [(1, "cpuacct.usage"), (2, "cpu.stat")])
def test_containers_use_is_read_twice_a_round(tmp_path: Path, version: int, file: str) -> None:
    """Five passes apart, for nothing waits for it."""
    tree = Tree(tmp_path, version)
    reader, cgroup = tree.reader(), f"{POD}/c1"
    tree.make(cgroup)
    reader.place({cgroup: Role.CONTAINER})
    reader.read()
    read_in = []
    for number in range(20):
        tree.reads.clear()
        reader.read()
        read_in += [number] if tree.reads[file] else []
    reader.close()
    assert len(read_in) == 4 and {b - a for a, b in pairwise(read_in)} == {5}


def test_use_of_watched_containers_is_read_each_pass(tree: Tree) -> None:
    """And how they were throttled, which on v2 is the same file; of nobody else, and no other file."""
    reader, cgroups = tree.reader(slow_passes=1000), (f"{POD}/c1", f"{POD}/c2")
    for cgroup in cgroups:
        tree.make(cgroup)
    reader.place(dict.fromkeys(cgroups, Role.CONTAINER))
    for _ in range(2):
        reader.read()
    tree.reads.clear()
    reader.read(Watched(using=(cgroups[0], "/gone")))
    reader.close()
    files = ("cpuacct.usage", "cpu.stat") if tree.version == 1 else ("cpu.stat",)
    assert tree.reads == dict.fromkeys(files, 1)


def test_who_is_heard_is_read_each_pass(tree: Tree) -> None:
    """How long it waited for CPU, and of nothing else more than is due; whoever is not there, or has no such file, is
    no error."""
    pressure = "unified/cpu.pressure" if tree.version == 1 else "cpu.pressure"
    for pod in ("/a", "/b"):
        tree.make(pod)
    reader = tree.reader(slow_passes=1000)
    reader.place({"/a": Role.POD, "/b": Role.POD})
    for _ in range(2):
        reader.read()
    for pod in ("/a", "/b"):
        tree.write(pod, pressure, PSI.replace("total=9", "total=50"))
    tree.reads.clear()
    found = reader.read(Watched(("/a", "/gone")))
    totals = {pod: found[pod].pressure.cpu_some.total_us for pod in ("/a", "/b")}  # type: ignore[union-attr]
    assert totals["/a"] > totals["/b"] and tree.reads["cpu.pressure"] == 1 and not tree.reads["memory.pressure"]
    tree.path("/b", pressure).unlink()
    reader.close()
    assert reader.read(Watched(("/b",))) == {}


def test_slow_turns_are_spread(v1: Tree) -> None:
    """Of twenty containers two are due in each pass of ten: no pass is a spike; churn keeps it so."""
    names = [f"{POD}/{number}" for number in range(20)]
    reader = v1.reader()
    for name in names:
        v1.make(name)
    reader.place(dict.fromkeys(names[:15], Role.CONTAINER))
    reader.place(dict.fromkeys(names[5:], Role.CONTAINER))
    reader.place(dict.fromkeys(names, Role.CONTAINER))
    reader.read()
    for _ in range(10):
        v1.reads.clear()
        reader.read()
        assert v1.reads["memory.stat"] == 2 and v1.reads["cpuacct.usage"] == 4
    reader.close()


def test_slow_passes_of_one_read_everything(v1: Tree) -> None:
    """The full pass is the same code."""
    v1.make(POD)
    reader = v1.reader(slow_passes=1)
    reader.place({POD: Role.POD})
    reader.read()
    v1.reads.clear()
    reader.read()
    of_roots = ("cpuset.cpus", "quota_us", "period_us", "memory.limit_in_bytes", "pids.current", "pids.max")
    assert v1.reads == Counter({name.split("/")[1]: 1 for name in V1_TEXTS if not name.endswith(of_roots)})
    reader.close()


def test_memory_is_read_again_when_its_level_moved(tree: Tree) -> None:
    """Beyond 4 MiB away from the last reading, at once; small steps add up."""
    stat = "memory/memory.stat" if tree.version == 1 else "memory.stat"
    level = "memory/memory.usage_in_bytes" if tree.version == 1 else "memory.current"
    tree.make(POD)
    reader = tree.reader(slow_passes=1000)
    reader.place({POD: Role.POD})
    reader.read()
    tree.write(POD, stat, tree.texts[stat].replace("unevictable 4", "unevictable 40"))
    seen = []
    for step in (3, 4, 5):
        tree.write(POD, level, f"{(100 + step) * MIB}\n")
        sample = reader.read()[POD]
        assert isinstance(sample, CgroupSample)
        seen.append(sample.memory_bytes)
    assert seen == [7, 7, 43]
    tree.reads.clear()
    reader.read()
    assert tree.reads["memory.stat"] == 0
    reader.close()


def test_without_a_cheap_level_memory_is_read_each_pass(v1: Tree) -> None:
    """Better dear than late."""
    v1.make(POD, {name: text for name, text in V1_TEXTS.items() if "usage_in_bytes" not in name})
    reader = v1.reader()
    reader.place({POD: Role.POD})
    for _ in range(3):
        reader.read()
    assert v1.reads["memory.stat"] == 3
    reader.close()


def test_a_vanished_cgroup_is_a_value_and_its_successor_is_read_afresh(tree: Tree) -> None:
    """ENODEV, as the kernel says it on a cached descriptor, drops them all; the next pass opens what is there now."""
    tree.make(POD)
    tree.make("/kubepods")
    reader = tree.reader()
    reader.place({POD: Role.POD, "/kubepods": Role.ROOT})
    reader.read()
    kept = reader.open_descriptors
    # A cached descriptor of a removed regular file can still be read, so the kernel's answer is put in its place.
    tree.refuse = lambda path: errno.ENODEV if POD in path and path.endswith(" (deleted)") else 0
    tree.remove(POD)
    gone = Missing(POD, Absence.GONE, "no such cgroup")
    assert reader.read() == {POD: gone, "/kubepods": whole(tree.version, Role.ROOT)} == reader.read()
    tree.make(POD)
    assert reader.read()[POD] == whole(tree.version, Role.POD)
    assert reader.open_descriptors == kept
    reader.close()


def test_a_cgroup_half_made_is_gone_until_it_is_whole(v1: Tree) -> None:
    """On v1 the hierarchies are made one after the other."""
    v1.make(POD, {"cpuacct/cpuacct.usage": "5\n"})
    reader = v1.reader()
    reader.place({POD: Role.POD})
    assert reader.read()[POD] == Missing(POD, Absence.GONE, "no such cgroup")
    v1.make(POD)
    assert reader.read()[POD] == whole(1, Role.POD)
    reader.close()


@pytest.mark.parametrize("name", ["cpuacct/cpuacct.usage", "memory/memory.stat"])
@pytest.mark.parametrize("role", [Role.POD, Role.ROOT])
def test_garbage_is_not_measured_and_said_once(
    v1: Tree, name: str, role: Role, capsys: pytest.CaptureFixture[str]
) -> None:
    """One clear line that names the file, not one a second; the file is read again each pass."""
    v1.make(POD, V1_TEXTS | {name: "not a number"})
    reader = v1.reader()
    reader.place({POD: role})
    for _ in range(3):
        found = reader.read()[POD]
        assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE
        assert found.path == str(v1.path(POD, name)) and "not a number" in found.detail
    assert capsys.readouterr().out.count("control file unreadable") == 1
    v1.write(POD, name, V1_TEXTS[name])
    assert reader.read()[POD] == whole(1, role)
    reader.close()


def test_a_failing_file_is_opened_again(v1: Tree) -> None:
    """An I/O error is unreadable, not gone, and not for ever."""
    v1.make(POD)
    reader = v1.reader()
    reader.place({POD: Role.POD})
    reader.read()
    v1.refuse = lambda path: errno.EIO if path.endswith("cpuacct.usage") else 0
    found = reader.read()[POD]
    assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE and found.detail == "Input/output error"
    v1.refuse = lambda _path: 0
    assert reader.read()[POD] == whole(1, Role.POD)
    reader.close()


def test_what_a_kernel_lacks_is_none_and_not_asked_for_again(v1: Tree) -> None:
    """No unified mount, no blkio, no cpuset: a few attempts a cgroup."""
    v1.make(POD, {name: text for name, text in V1_TEXTS.items() if name.split("/")[0] in ("cpu", "cpuacct", "memory")})
    reader = v1.reader(slow_passes=1)
    reader.place({POD: Role.ROOT})
    without = msgspec.structs.replace(whole(1, Role.ROOT), pressure=None, disk=None)
    for _ in range(4):
        assert reader.read()[POD] == without and reader.cpus(POD) is None
    v1.make(POD)
    assert reader.read()[POD] == without
    reader.close()


def test_a_hierarchy_made_a_little_later_is_found(v1: Tree) -> None:
    """A pass between the making of cpuacct and memory and that of cpu and blkio costs one round, not the pod's life."""
    late = {name: text for name, text in V1_TEXTS.items() if name.split("/")[0] in ("cpu", "blkio")}
    v1.make(POD, {name: text for name, text in V1_TEXTS.items() if name not in late})
    reader = v1.reader(slow_passes=10)
    reader.place({POD: Role.BEST_EFFORT_POD})
    first = reader.read()[POD]
    assert isinstance(first, CgroupSample) and first.throttling is None and first.disk is None
    v1.make(POD, late)
    for _ in range(10):
        reader.read()
    assert reader.read()[POD] == whole(1, Role.POD)
    reader.close()


def test_pressure_switched_off_is_none(v1: Tree) -> None:
    """With psi=0 the files exist and answer EOPNOTSUPP."""
    v1.make(POD)
    v1.refuse = lambda path: errno.EOPNOTSUPP if path.endswith(".pressure") else 0
    reader = v1.reader(slow_passes=1)
    reader.place({POD: Role.POD})
    sample = reader.read()[POD]
    assert isinstance(sample, CgroupSample) and sample.pressure is None and sample.disk == DiskBytes(7, 8)
    reader.close()


@pytest.mark.parametrize(("role", "disk"), [(Role.CONTAINER, DiskBytes(7, 8)), (Role.POD, None)])
def test_an_old_kernels_disk_bytes_serve_containers_only(v1: Tree, role: Role, disk: DiskBytes | None) -> None:
    """Without the recursive file a pod's own shows none of its containers' bytes."""
    recursive = "blkio/blkio.throttle.io_service_bytes_recursive"
    texts = {name.removesuffix("_recursive"): text for name, text in V1_TEXTS.items()}
    v1.make(POD, texts)
    reader = v1.reader()
    reader.place({POD: role})
    sample = reader.read()[POD]
    assert isinstance(sample, CgroupSample) and sample.disk == disk and not v1.path(POD, recursive).exists()
    reader.close()


def test_few_descriptors_cost_time_not_facts(v1: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    """What may not stay open is opened for each reading, which is said once."""
    names = [f"{POD}/{number}" for number in range(3)]
    for name in names:
        v1.make(name)
    reader = v1.reader(slow_passes=1, descriptors=4)
    reader.place(dict.fromkeys(names, Role.CONTAINER))
    for _ in range(3):
        assert reader.read() == dict.fromkeys(names, WHOLE[1])
        assert reader.open_descriptors == 4
    assert capsys.readouterr().out.count("too few file descriptors") == 1
    reader.place({})
    assert reader.open_descriptors == 0


def test_who_leaves_keeps_nothing_open(v1: Tree) -> None:
    """And the roster is what is read: no more, no less."""
    for name in (POD, "/kubepods"):
        v1.make(name)
    reader = v1.reader()
    reader.place({POD: Role.POD, "/kubepods": Role.ROOT})
    reader.read()
    both = reader.open_descriptors
    reader.place({"/kubepods": Role.ROOT})
    assert set(reader.read()) == {"/kubepods"} and reader.open_descriptors < both
    reader.close()


def test_a_change_of_role_is_a_new_start(v1: Tree) -> None:
    """A pod that became best effort is watched as one from the next pass on."""
    v1.make(POD)
    reader = v1.reader()
    for role in (Role.POD, Role.BEST_EFFORT_POD):
        reader.place({POD: role})
        reader.read()
    v1.reads.clear()
    reader.read()
    assert v1.reads["cpu.stat"] == 1
    reader.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_tree_we_cannot_work_on_is_refused(tmp_path: Path, version: int) -> None:
    """One line with the path and the fix, before anything is touched."""
    tree = Tree(tmp_path, version)
    tree.make("/kubepods/besteffort")
    reader = tree.reader()
    reader.require(Layout("/kubepods", version))
    with pytest.raises(KernelFault, match=r"/nope/besteffort/\S+: does not exist .*--kubepods"):
        reader.require(Layout("/nope", version))
    reader.close()


@pytest.mark.parametrize("text", ["max 100000\n", "none\n", "-1\n", ""])
def test_no_quota(tree: Tree, text: str) -> None:
    """Without one, or with one that is no number."""
    tree.make(POD)
    tree.write(POD, "cpu.max" if tree.version == 2 else "cpu/cpu.cfs_quota_us", text)
    reader = tree.reader()
    reader.place({POD: Role.ROOT})
    reader.read()
    assert reader.quota_millis(POD) is None
    reader.close()


LIMITS = ("cpuset.cpus", "cpu.max", "cpu.cfs_", "memory.max", "memory.limit_in_bytes")


def test_limits_of_all_pods_hold_while_they_cannot_be_read(tree: Tree) -> None:
    """So that no more is lent meanwhile; what the file says afterwards holds again, and a cgroup that is new tells its
    own."""
    tree.make(POD)
    reader = tree.reader()
    reader.place({POD: Role.ROOT})
    reader.read()
    tree.refuse = lambda path: errno.EIO if any(name in path for name in LIMITS) else 0
    tree.write(
        POD, "cpu.max" if tree.version == 2 else "cpu/cpu.cfs_quota_us", "max 100000" if tree.version == 2 else "-1"
    )
    for _ in range(3):
        reader.read()
        assert (reader.cpus(POD), reader.quota_millis(POD), reader.memory_limit(POD)) == (4, 2500, 200 * MIB)
    tree.refuse = lambda path: 0
    reader.read()
    assert (reader.cpus(POD), reader.quota_millis(POD), reader.memory_limit(POD)) == (4, None, 200 * MIB)
    reader.close()


def test_every_needed_file_of_a_kernel_is_in_the_made_trees() -> None:
    """The tests above speak of all files there are."""
    assert {f"{kind.controller}/{kind.file}" for kind in V1_FILES} == set(V1_TEXTS)
    assert {kind.file for kind in V2_FILES} == set(V2_TEXTS) and FilePart.CPU in {kind.part for kind in V2_FILES}


def test_the_soft_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    """To the hard one, once, by whoever makes a reader without a limit of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = 1024
    assert hard == resource.RLIM_INFINITY or hard > low
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        CgroupReader(tmp_path).close()
        raised = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert raised[1] == hard and (raised[0] == hard or raised[0] > low)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_what_says_nothing_new_is_the_same_object(v1: Tree) -> None:
    """Unchanged text is not parsed again, and its sample is not made again; garbage in between is still seen."""
    v1.make(POD)
    reader = v1.reader(slow_passes=1)
    reader.place({POD: Role.POD})
    first = reader.read()[POD]
    assert reader.read()[POD] is first
    v1.write(POD, "cpuacct/cpuacct.usage", "6\n")
    second = reader.read()[POD]
    assert isinstance(second, CgroupSample) and isinstance(first, CgroupSample)
    assert (second.cpu_ns, second.pressure) == (6, first.pressure)
    v1.write(POD, "memory/memory.stat", "garbage")
    assert isinstance(reader.read()[POD], Missing)
    v1.write(POD, "memory/memory.stat", V1_TEXTS["memory/memory.stat"])
    assert reader.read()[POD] == second
    reader.close()
