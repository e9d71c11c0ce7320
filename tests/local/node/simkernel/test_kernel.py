"""Steps of the simulated kernel over made processes: counted, stopped, killed and confined as a kernel would."""

from __future__ import annotations

from agent.core.observe import parse
from local.node.simkernel.limits import Priority
from local.node.simkernel.tree import MARK, read_joined
from tests.local.node.simkernel.conftest import World

MIB = 1 << 20


def used_us(world: World, path: str) -> int:
    return parse.v2_cpu_time(world.read(path, "cpu.stat").encode())[0] // 1000


def test_cpu_time_is_counted_up_to_the_top(world: World) -> None:
    """A process, the children it waited for, and an orphan's last known time; never less than before."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    world.table.add(2, parent=1, session=1, cpu_us=30_000)
    world.table.add(3, parent=1, session=1, cpu_us=5_000)
    world.table.change(1, cpu_us=10_000)
    world.step()
    assert used_us(world, pod) == 45_000
    # 2 ends and is waited for; 1 ends too, and leaves 3 to the node.
    del world.table.processes[2]
    world.table.change(1, cpu_us=42_000)
    world.step()
    assert used_us(world, pod) == 47_000
    del world.table.processes[1]
    world.table.change(3, parent=1000, cpu_us=6_000)
    world.step()
    assert [used_us(world, path) for path in (pod, world.cgroups.layout.kubepods)] == [48_000, 48_000]


def test_everything_a_container_begins_is_inside(world: World) -> None:
    """Children by their parent, an orphan by its session; others' children are outside."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    world.table.add(2, parent=1)
    world.table.add(3, parent=1000, session=1)
    world.table.add(4, parent=1000)
    world.step()
    assert world.read(pod, "cgroup.procs").split() == ["1", "2", "3"]
    assert int(world.read(world.cgroups.layout.kubepods, "pids.current")) == 3


def test_who_was_begun_before_its_parent_joined(world: World) -> None:
    """Is inside too: a container asks in at its beginning, and is heard some steps later."""
    pod = world.make("pod1/c1")
    world.table.add(1)
    world.table.add(2, parent=1, session=2)
    world.step(4)
    world.join(pod, 1)
    world.step(2)
    assert world.read(pod, "cgroup.procs").split() == ["1", "2"]


def test_a_stranger_does_not_join(world: World) -> None:
    """Only the node begins containers: a number in a file may be anybody's."""
    pod = world.make("pod1/c1")
    world.join(pod, 7, parent=1)
    world.step(2)
    assert world.read(pod, "cgroup.procs") == ""


def test_a_quota_is_had_by_stopping(world: World) -> None:
    """Who uses a whole CPU at a quota of a quarter runs a quarter of the time, in every cgroup below the limit."""
    world.make("besteffort", cpu_max="25000 100000")
    pod = world.make("besteffort/pod1/c1")
    world.join(pod, 1)
    world.step(2)
    running = 0
    for _ in range(200):
        if not world.table.processes[1].stopped:
            running += 1
            world.table.change(1, cpu_us=world.table.processes[1].cpu_us + 100_000)
        world.step()
    assert 45 <= running <= 55
    throttling = parse.v2_cpu_time(world.read(f"{world.cgroups.layout.kubepods}/besteffort", "cpu.stat").encode())[1]
    assert throttling is not None and throttling.throttled > 100 and throttling.throttled_us > 10_000_000


def test_a_lifted_quota_lets_go(world: World) -> None:
    """At the next step; and who stopped somebody else is not undone."""
    pod = world.make("pod1/c1", cpu_max="1000 100000")
    world.join(pod, 1)
    world.step(2)
    world.table.change(1, cpu_us=500_000)
    world.step()
    assert world.table.processes[1].stopped
    world.cgroups.write("", pod, "cpu.max", "max 100000")
    world.step()
    assert not world.table.processes[1].stopped
    world.table.change(1, state="T")
    world.step()
    assert world.table.processes[1].stopped


def test_a_memory_limit_kills_the_largest(world: World) -> None:
    """Counted in the cgroup and above; everything in a cgroup that says so dies together."""
    pod = world.make("pod1", memory_max=str(100 * MIB))
    one, two = world.make("pod1/c1"), world.make("pod1/c2", memory_oom_group="1")
    world.join(one, 1)
    world.join(two, 2)
    world.step(2)
    world.table.add(3, parent=2, session=2)
    world.table.memory = {1: 30 * MIB, 2: 10 * MIB, 3: 80 * MIB}
    world.step()
    assert sorted(world.actions.killed) == [2, 3]
    events = {path: parse.v2_memory_events(world.read(path, "memory.events").encode()) for path in (one, two, pod)}
    assert [events[path].oom_kill for path in (one, two, pod)] == [0, 2, 2]
    assert events[pod].maximum == 1
    world.step(3)
    assert world.table.processes.keys() == {1}


def test_shared_memory_condemns_nobody(world: World) -> None:
    """After a fork the cheap sum counts pages twice; the exact one decides."""
    pod = world.make("pod1/c1", memory_max=str(100 * MIB))
    world.join(pod, 1)
    world.table.memory, world.table.shared = {1: 150 * MIB}, {1: 60 * MIB}
    world.step(3)
    assert world.actions.killed == []


def test_cpus_and_priority(world: World) -> None:
    """A CPU list holds for all below; kubelet's weight for best effort is niceness once it stays."""
    world.make("besteffort", cpu_weight="1")
    pod = world.make("besteffort/pod1/c1")
    world.join(pod, 1)
    world.step(5)
    assert world.actions.lowered == {}
    world.step(10)
    assert world.actions.lowered == {1: Priority(19)}
    world.cgroups.write("", f"{world.cgroups.layout.kubepods}/besteffort", "cpuset.cpus", "2-3")
    world.step()
    assert world.actions.pinned == {1: (2, 3)}
    assert parse.cpu_count(world.read(pod, "cpuset.cpus.effective").encode()) == 2


def test_a_removed_cgroups_late_child_dies(world: World) -> None:
    """Nothing outlives its container."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    world.table.add(2, parent=1, session=1)
    for file in sorted((world.root / pod.strip("/")).iterdir()):
        file.unlink()
    (world.root / pod.strip("/")).rmdir()
    world.step(2)
    assert sorted(world.actions.killed) == [1, 2]


def test_a_new_simulator_goes_on(world: World) -> None:
    """It knows the members, lets them run, and counts from where the last one was."""
    pod = world.make("pod1/c1", cpu_max="1000 100000")
    world.join(pod, 1)
    world.step(2)
    world.table.change(1, cpu_us=500_000)
    world.step()
    assert world.table.processes[1].stopped
    world.cgroups.write("", pod, "cpu.max", "max 100000")
    world.begin()
    world.step()
    assert not world.table.processes[1].stopped
    world.table.change(1, cpu_us=600_000)
    world.step()
    assert used_us(world, pod) == 600_000


def test_the_end_leaves_nobody_stopped(world: World) -> None:
    """They run on."""
    pod = world.make("pod1/c1", cpu_max="1000 100000")
    world.join(pod, 1)
    world.step(2)
    world.table.change(1, cpu_us=500_000)
    world.step()
    world.kernel.end()
    assert not world.table.processes[1].stopped and world.actions.killed == []


def test_a_dead_node_takes_everybody_with_it(world: World) -> None:
    """Members, and who asked in since the last look; of all others nobody."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    late = world.make("pod2/c1")
    world.join(late, 2, parent=77)
    world.table.add(3, parent=77)
    world.kernel.bury(77)
    assert sorted(world.actions.killed) == [1, 2] and world.table.processes.keys() == {3}


def test_half_a_knob_changes_nothing(world: World) -> None:
    """A file between two writes is empty: what it said before holds."""
    pod = world.make("pod1/c1", cpu_max="1000 100000")
    world.join(pod, 1)
    world.step(2)
    (world.root / pod.strip("/") / "cpu.max").write_text("")
    world.table.change(1, cpu_us=500_000)
    world.step()
    assert world.table.processes[1].stopped


def test_a_number_that_is_anothers_by_now_does_not_join(world: World) -> None:
    """Neither while the node lives, nor when its heir's children are ended."""
    pod = world.make("pod1/c1")
    world.table.add(7, started=500)
    world.ask(pod, 7, 1)
    world.step(2)
    assert world.read(pod, "cgroup.procs") == ""
    world.table.change(7, parent=77)
    world.kernel.bury(77)
    assert world.actions.killed == []


def test_a_session_that_ended_takes_nobody_in(world: World) -> None:
    """A probe's command is through; its number begins another's session, and an orphan of that is nobody's."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.join(pod, 2)
    world.step(2)
    del world.table.processes[2]
    world.step(3)
    world.table.add(3, parent=77, session=2, started=900)
    world.step(2)
    assert world.read(pod, "cgroup.procs").split() == ["1"]


def test_who_asked_in_and_ended_at_once(world: World) -> None:
    """What it left behind is inside; an orphan of a much later session of that number is not."""
    pod = world.make("pod1/c1")
    world.ask(pod, 5, 100)
    world.table.add(6, parent=1, session=5, started=101)
    world.ask(pod, 8, 100)
    world.table.add(9, parent=1, session=8, started=100_000)
    world.step(2)
    assert world.read(pod, "cgroup.procs").split() == ["6"]


def test_the_list_of_who_asked_in_stays_short(world: World) -> None:
    """However many probes ran: heard ones are taken out of it, and many at once are all heard."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    joined = world.root / pod.strip("/") / ".joined"
    for pid in range(10_000, 13_000):
        world.ask(pod, pid, 1)
    world.join(pod, 2)
    world.step()
    assert world.read(pod, "cgroup.procs").split() == ["1", "2"]
    assert read_joined(joined.parent) == [] and joined.stat().st_blocks * 512 <= 8192
    world.join(pod, 3)
    assert read_joined(joined.parent) == [(3, 1)]
    world.begin()
    world.step()
    assert world.read(pod, "cgroup.procs").split() == ["1", "2", "3"]


def test_a_daemon_is_inside(world: World) -> None:
    """By its mark, though its parent and its session's leader are gone; of another tree's marks nobody is."""
    pod = world.make("pod1/c1")
    world.join(pod, 1)
    world.step(2)
    for pid, marks in ((5, world.cgroups.mark(pod)), (6, {MARK: "/elsewhere/kubepods/pod1/c1"}), (7, {})):
        world.table.add(pid, parent=77, session=4)
        world.table.marks[pid] = marks.get(MARK, "")
    world.step()
    assert world.read(pod, "cgroup.procs").split() == ["1", "5"]


def test_a_mark_may_be_seen_before_its_cgroup(world: World) -> None:
    """One made since the last look at the tree: its process is inside, and lives."""
    world.step()
    pod = world.make("pod1/c1")
    world.table.add(5)
    world.table.marks[5] = world.cgroups.mark(pod)[MARK]
    world.step()
    assert world.read(pod, "cgroup.procs").split() == ["5"] and world.actions.killed == []


def test_a_daemon_of_a_removed_cgroup_dies(world: World) -> None:
    """It was begun in the moment before, and nobody had seen it."""
    gone = f"{world.cgroups.layout.kubepods}/pod1/c1"
    world.table.add(5, parent=77, session=4)
    world.table.marks[5] = world.cgroups.mark(gone)[MARK]
    world.step(2)
    assert world.actions.killed == [5]
