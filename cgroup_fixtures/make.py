"""The made scenarios, written when they are wanted: `python -m cgroup_fixtures.make DIR [NAME…]`.

Every made node has 4 CPUs, 8 GiB and the pods of `PODS`, with two containers each (250 pods in v1_250_pods); a
container works at a constant rate, so that every rate and sum can be worked out by hand from the tables here. The
system outside pods uses 100 milli-CPU and 1 GiB.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from agent.core.observe import recording
from agent.core.observe.layout import CgroupDriver
from agent.core.observe.recording import (
    CgroupShape,
    NodeShape,
    Origin,
    Scenario,
    ScenarioContainer,
    ScenarioPod,
)
from cgroup_fixtures.names import Place, conmon_path, container_path, pod_path, qos_path
from model.qos import KubernetesQoS, QoSClass

MIB = 1 << 20
GIB = 1 << 30
CPUS = 4
FRAMES = 5
SYSTEM_MILLIS = 100
SYSTEM_BYTES = GIB
# Counters do not start at 0: a rate taken from one sample alone would show.
STARTED_SECONDS = 1000
PERIOD_US = 100_000

Tree = dict[str, bytes]


class Work(NamedTuple):
    """What runs in one cgroup: milli-CPU all the time, bytes of anonymous memory, bytes of page cache."""

    cpu_millis: int
    anon_bytes: int
    file_bytes: int

    def __add__(self, other: object) -> Work:
        assert isinstance(other, Work)
        return Work(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


IDLE = Work(0, 0, 0)
CONMON = Work(1, MIB, 0)


class MadePod(NamedTuple):
    """A pod as the API server knows it, and what its containers do, in their order."""

    pod: ScenarioPod
    work: tuple[Work, ...]


def _pod(
    number: int, name: str, classes: tuple[KubernetesQoS, QoSClass], work: tuple[Work, ...], **requests: int
) -> MadePod:
    containers = tuple(
        ScenarioContainer(title, f"{number:04x}{place:04x}" * 8) for place, title in enumerate(("main", "side"), 1)
    )
    uid = f"{number:08x}-1111-4222-8333-444444444444"
    return MadePod(ScenarioPod(name, uid, classes[0], classes[1], containers=containers, **requests), work)


PODS = (
    _pod(
        1,
        "web",
        (KubernetesQoS.BURSTABLE, QoSClass.LS),
        (Work(300, 96 * MIB, 32 * MIB), Work(100, 32 * MIB, 8 * MIB)),
        cpu_millis=1000,
        memory_bytes=512 * MIB,
    ),
    _pod(
        2,
        "database",
        (KubernetesQoS.GUARANTEED, QoSClass.LSR),
        (Work(150, 256 * MIB, 64 * MIB), Work(50, 16 * MIB, 0)),
        cpu_millis=1000,
        memory_bytes=GIB,
    ),
    _pod(
        3,
        "train",
        (KubernetesQoS.BEST_EFFORT, QoSClass.BE),
        (Work(500, 128 * MIB, 16 * MIB), Work(200, 64 * MIB, 0)),
        batch_cpu_millis=1000,
        batch_memory_bytes=512 * MIB,
    ),
)
MANY = tuple(
    _pod(
        number,
        f"pod-{number:03d}",
        (KubernetesQoS.BURSTABLE, QoSClass.LS) if number % 2 else (KubernetesQoS.BEST_EFFORT, QoSClass.BE),
        (Work(5, 4 * MIB, MIB), Work(1, MIB, 0)),
        **({"cpu_millis": 10, "memory_bytes": 8 * MIB} if number % 2 else {"batch_cpu_millis": 10}),
    )
    for number in range(1, 251)
)


class MadeNode(NamedTuple):
    """A made node; `place.root` tells where pods are. `quota_us` limits best effort, -1 for no limit."""

    version: int
    place: Place
    pods: tuple[MadePod, ...] = PODS
    quota_us: int = 200_000

    @property
    def cgroups(self) -> Mapping[str, Work]:
        """What each cgroup below the mount uses, its children's share included."""
        found = {self.place.root: IDLE}
        for item in self.pods:
            below = qos_path(self.place, item.pod.kubernetes_qos)
            pod = pod_path(self.place, item.pod.kubernetes_qos, item.pod.uid)
            for path, work in self._containers(item, pod):
                found[path] = work
                for above in {self.place.root, below, pod}:
                    found[above] = found.get(above, IDLE) + work
        return found

    def pod(self, name: str) -> str:
        """The directory of a pod."""
        found = next(item.pod for item in self.pods if item.pod.name == name)
        return pod_path(self.place, found.kubernetes_qos, found.uid)

    def tree(self, second: int) -> Tree:
        """All files at that second of the scenario."""
        seconds = STARTED_SECONDS + second
        files = dict(_proc(seconds, self.cgroups[self.place.root]))
        if self.version == 2:
            files[f"{recording.CGROUPS}/cgroup.controllers"] = b"cpuset cpu io memory pids\n"
        best_effort = qos_path(self.place, KubernetesQoS.BEST_EFFORT)
        write = _v2 if self.version == 2 else _v1
        for path, work in self.cgroups.items():
            quota = self.quota_us if path == best_effort else -1
            for name, text in write(path, work, seconds, quota).items():
                files[f"{recording.CGROUPS}/{name}"] = text.encode()
        return files

    def _containers(self, item: MadePod, pod: str) -> list[tuple[str, Work]]:
        found = [
            (container_path(self.place, pod, container.id), work)
            for container, work in zip(item.pod.containers, item.work, strict=True)
        ]
        if self.place.runtime == "cri-o":
            found += [(conmon_path(self.place, pod, container.id), CONMON) for container in item.pod.containers]
        return found


def _v1(path: str, work: Work, seconds: int, quota_us: int) -> dict[str, str]:
    anon, file = work.anon_bytes, work.file_bytes
    # A quarter of the memory is active, of anonymous memory and of the page cache alike.
    rows = {
        "cache": file,
        "rss": anon,
        "inactive_anon": anon - anon // 4,
        "active_anon": anon // 4,
        "inactive_file": file - file // 4,
        "active_file": file // 4,
        "unevictable": 0,
    }
    # A cgroup's own rows stay 0, so that reading them for the totals shows.
    own = dict.fromkeys(rows, 0)
    totals = {f"total_{name}": value for name, value in rows.items()}
    return {
        f"cpuacct{path}/cpuacct.usage": f"{work.cpu_millis * seconds * 1_000_000}\n",
        f"cpu{path}/cpu.stat": _keyed({"nr_periods": 10 * seconds, "nr_throttled": 0, "throttled_time": 0}),
        f"cpu{path}/cpu.shares": "1024\n",
        f"cpu{path}/cpu.cfs_quota_us": f"{quota_us}\n",
        f"cpu{path}/cpu.cfs_period_us": f"{PERIOD_US}\n",
        f"cpuset{path}/cpuset.cpus": f"0-{CPUS - 1}\n",
        f"memory{path}/memory.stat": _keyed(own | totals),
        f"memory{path}/memory.usage_in_bytes": f"{anon + file}\n",
        f"memory{path}/memory.failcnt": "0\n",
        f"memory{path}/memory.limit_in_bytes": "9223372036854771712\n",
        f"memory{path}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
        f"pids{path}/pids.current": "10\n",
        f"pids{path}/pids.max": "max\n",
        f"blkio{path}/blkio.throttle.io_service_bytes": "Total 0\n",
        f"blkio{path}/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
        **{f"unified{path}/{kind}.pressure": _CALM for kind in ("cpu", "memory", "io")},
    }


def _v2(path: str, work: Work, seconds: int, quota_us: int) -> dict[str, str]:
    anon, file = work.anon_bytes, work.file_bytes
    used = work.cpu_millis * seconds * 1000
    stat = {"usage_usec": used, "user_usec": used, "system_usec": 0, "nr_periods": 10 * seconds, "nr_throttled": 0}
    memory = {
        "anon": anon,
        "file": file,
        "kernel": 0,
        "inactive_anon": anon - anon // 4,
        "active_anon": anon // 4,
        "inactive_file": file - file // 4,
        "active_file": file // 4,
        "unevictable": 0,
    }
    folder = path.lstrip("/")
    return {
        f"{folder}/cgroup.events": _keyed({"populated": 1, "frozen": 0}),
        f"{folder}/cpu.stat": _keyed(stat | {"throttled_usec": 0, "nr_bursts": 0, "burst_usec": 0}),
        f"{folder}/cpu.max": f"{'max' if quota_us < 0 else quota_us} {PERIOD_US}\n",
        f"{folder}/cpu.weight": "100\n",
        f"{folder}/cpuset.cpus.effective": f"0-{CPUS - 1}\n",
        f"{folder}/memory.stat": _keyed(memory),
        f"{folder}/memory.current": f"{anon + file}\n",
        f"{folder}/memory.max": "max\n",
        **dict.fromkeys((f"{folder}/memory.events", f"{folder}/memory.events.local"), _NO_EVENTS),
        f"{folder}/pids.current": "10\n",
        f"{folder}/pids.max": "max\n",
        f"{folder}/io.stat": f"254:0 rbytes=0 wbytes={seconds * 4096} rios=0 wios={seconds} dbytes=0 dios=0\n",
        **{f"{folder}/{kind}.pressure": _CALM for kind in ("cpu", "memory", "io")},
    }


_NO_EVENTS = "".join(f"{name} 0\n" for name in ("low", "high", "max", "oom", "oom_kill"))
_CALM = "".join(f"{kind} avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" for kind in ("some", "full"))


def _keyed(rows: Mapping[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in rows.items())


def _proc(seconds: int, pods: Work) -> Tree:
    """The node's own files; a clock tick is 10 ms, and all work is user time."""
    busy = (pods.cpu_millis + SYSTEM_MILLIS) * seconds // 10
    idle = CPUS * 100 * seconds - busy
    each = "".join(f"cpu{n} {busy // CPUS} 0 0 {idle // CPUS} 0 0 0 0 0 0\n" for n in range(CPUS))
    available = 8 * GIB - SYSTEM_BYTES - pods.anon_bytes
    memory = {"MemTotal": 8 * GIB, "MemFree": available - pods.file_bytes, "MemAvailable": available}
    received, sent = 1000 * seconds, 500 * seconds
    return {
        "proc/stat": f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n{each}".encode(),
        "proc/meminfo": "".join(f"{name + ':':16}{value // 1024:8} kB\n" for name, value in memory.items()).encode(),
        "proc/loadavg": b"0.50 0.40 0.30 1/300 4711\n",
        "proc/sys/kernel/pid_max": b"32768\n",
        "proc/sys/kernel/threads-max": b"63000\n",
        "proc/net/dev": (
            "Inter-|   Receive                                                |  Transmit\n"
            " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls"
            " carrier compressed\n"
            f"  eth0: {received} {seconds} 0 0 0 0 0 0 {sent} {seconds} 0 0 0 0 0 0\n"
        ).encode(),
        **{f"proc/pressure/{kind}": _CALM.encode() for kind in ("cpu", "memory", "io")},
    }


def _frames(node: MadeNode, count: int = FRAMES) -> list[Tree]:
    return [node.tree(second) for second in range(count)]


def _pod_vanishes(node: MadeNode) -> list[Tree]:
    """From frame 2 on the batch pod's cgroups are gone; its parents keep what it used."""
    frames = _frames(node)
    gone = node.pod("train")
    return [
        {path: text for path, text in tree.items() if number < 2 or gone not in path}
        for number, tree in enumerate(frames)
    ]


def _counter_reset(node: MadeNode) -> list[Tree]:
    """In frame 3 the service's counters start again at 0, as in a cgroup made again; its parents' go on."""
    frames = _frames(node)
    for second, tree in enumerate(frames[3:]):
        fresh = node.tree(second - STARTED_SECONDS)
        tree.update({path: fresh[path] for path in tree if node.pod("web") in path})
    return frames


def _garbage(node: MadeNode) -> list[Tree]:
    """Frame 1 breaks pods' files, frame 3 the node's and the roots'; frames 2 and 4 are well again."""
    frames = _frames(node)
    web, train, best_effort = node.pod("web"), node.pod("train"), qos_path(node.place, KubernetesQoS.BEST_EFFORT)
    side = container_path(node.place, web, PODS[0].pod.containers[1].id)
    broken = {
        1: {
            f"sys/fs/cgroup/cpuacct{web}/cpuacct.usage": b"garbage\n",
            f"sys/fs/cgroup/cpuacct{side}/cpuacct.usage": b"-5\n",
            f"sys/fs/cgroup/memory{web}/memory.stat": b"total_inactive_anon 12\ntotal_active_an",
            f"sys/fs/cgroup/memory{train}/memory.stat": b"",
            f"sys/fs/cgroup/memory{train}/memory.usage_in_bytes": b"1e9\n",
            f"sys/fs/cgroup/cpu{train}/cpu.stat": b"\x00\xff\xfe nr_periods\n",
            f"sys/fs/cgroup/cpuacct{train}/cpuacct.usage": b"9" * 400 + b"\n",
        },
        3: {
            "proc/stat": b"cpu  garbage\n",
            "proc/meminfo": b"MemTotal: lots kB\n",
            "proc/pressure/cpu": b"",
            f"sys/fs/cgroup/cpuacct{node.place.root}/cpuacct.usage": b"12 13\n",
            f"sys/fs/cgroup/cpu{best_effort}/cpu.cfs_quota_us": b"max\n",
        },
    }
    for number, files in broken.items():
        frames[number].update(files)
    return frames


def _missing_controllers(node: MadeNode) -> list[Tree]:
    """No blkio, cpuset, pids or unified hierarchy is mounted."""
    absent = tuple(f"sys/fs/cgroup/{name}/" for name in ("blkio", "cpuset", "pids", "unified"))
    return [{path: text for path, text in tree.items() if not path.startswith(absent)} for tree in _frames(node)]


def _thrash_without_stalls(node: MadeNode) -> list[Tree]:
    """512 MiB are left, and each second the node takes 100 MiB from online pods, which read them back; Linux from 6.16
    on counts next to none of these waits as stalls."""
    frames = _frames(node)
    some, full = "some avg10=1.20 avg60=0.40 avg300=0.10", "full avg10=0.40 avg60=0.10 avg300=0.00"
    stalls = f"{some} total=900000\n{full} total=300000\n"
    memory = {"MemTotal": 8 * GIB, "MemFree": 64 * MIB, "MemAvailable": 512 * MIB}
    meminfo = "".join(f"{name + ':':16}{value // 1024:8} kB\n" for name, value in memory.items())
    for second, tree in enumerate(frames):
        pages = second * 100 * MIB // 4096
        rows = {"workingset_refault_anon": 0, "workingset_refault_file": pages}
        taken = {"pgsteal_kswapd": pages // 2, "pgsteal_direct": pages - pages // 2}
        tree["proc/meminfo"] = meminfo.encode()
        tree["proc/vmstat"] = _keyed(rows | taken).encode()
        tree["proc/pressure/memory"] = stalls.encode()
        for path in node.cgroups:
            online = path == node.place.root or "burstable" in path
            own = _keyed(rows if online else dict.fromkeys(rows, 0))
            tree[f"{recording.CGROUPS}{path}/memory.stat"] += own.encode()
            tree[f"{recording.CGROUPS}{path}/memory.pressure"] = (stalls if online else _CALM).encode()
    return frames


def _memory_short(node: MadeNode) -> list[Tree]:
    """68 % of the memory are in use in frame 0, 72 % from then on; 2 GiB of swap are free."""
    frames = _frames(node)
    for second, tree in enumerate(frames):
        left = 8 * GIB * (28 if second else 32) // 100
        memory = {"MemTotal": 8 * GIB, "MemFree": left, "MemAvailable": left, "SwapTotal": 2 * GIB, "SwapFree": 2 * GIB}
        rows = (f"{name + ':':16}{value // 1024:8} kB\n" for name, value in memory.items())
        tree["proc/meminfo"] = "".join(rows).encode()
    return frames


class Recipe(NamedTuple):
    """What a scenario is about, its node, and what happens to it."""

    about: str
    node: MadeNode
    frames: Callable[[MadeNode], list[Tree]] = _frames


_PLAIN = Place("/kubepods", CgroupDriver.CGROUPFS, "containerd")
_SLICE = "/kubepods.slice"
_NESTED = "/kubelet.slice/kubelet-kubepods.slice"
RECIPES: Mapping[str, Recipe] = {
    "v1_pod_vanishes": Recipe("the batch pod's cgroups are gone from frame 2 on", MadeNode(1, _PLAIN), _pod_vanishes),
    "v1_counter_reset": Recipe(
        "the service's counters start again at 0 in frame 3", MadeNode(1, _PLAIN), _counter_reset
    ),
    "v1_garbage": Recipe("garbage in pods' files (frame 1) and in the node's (frame 3)", MadeNode(1, _PLAIN), _garbage),
    "v1_250_pods": Recipe("250 pods of two containers", MadeNode(1, _PLAIN, MANY), lambda node: _frames(node, 2)),
    "v1_missing_controllers": Recipe(
        "no blkio, cpuset, pids or unified hierarchy", MadeNode(1, _PLAIN), _missing_controllers
    ),
    "v1_cgroupfs_docker": Recipe("docker's names, cgroupfs driver", MadeNode(1, _PLAIN._replace(runtime="docker"))),
    "v1_systemd_docker": Recipe(
        "docker's names, systemd driver", MadeNode(1, Place(_SLICE, CgroupDriver.SYSTEMD, "docker"))
    ),
    "v2_limits_max": Recipe("no limit anywhere: cpu.max and memory.max say max", MadeNode(2, _PLAIN, quota_us=-1)),
    "v2_nested_root": Recipe(
        "kubelet in a nested slice: every slice carries its parents' names",
        MadeNode(2, Place(_NESTED, CgroupDriver.SYSTEMD, "containerd")),
    ),
    "v2_nested_root_cgroupfs": Recipe(
        "kubelet with a nested cgroup root", MadeNode(2, _PLAIN._replace(root="/kubelet/kubepods"))
    ),
    "v2_systemd_containerd": Recipe(
        "containerd's names, systemd driver", MadeNode(2, Place(_SLICE, CgroupDriver.SYSTEMD, "containerd"))
    ),
    "v2_systemd_crio": Recipe(
        "cri-o's names, systemd driver; crio-conmon scopes are no containers",
        MadeNode(2, Place(_SLICE, CgroupDriver.SYSTEMD, "cri-o")),
    ),
    "v2_thrash_without_stalls": Recipe(
        "memory is short and pages come back as fast as they are taken; full stays near zero",
        MadeNode(2, _PLAIN),
        _thrash_without_stalls,
    ),
    "v2_memory_short": Recipe(
        "memory runs short, and swap is free",
        MadeNode(2, _PLAIN),
        _memory_short,
    ),
    "v2_cgroupfs_crio": Recipe(
        "cri-o's names, cgroupfs driver; crio-conmon groups are no containers",
        MadeNode(2, _PLAIN._replace(runtime="cri-o")),
    ),
}


def make(name: str, parent: Path) -> Path:
    """Write the scenario to a folder of its name below `parent`; returns that folder."""
    recipe = RECIPES[name]
    place, folder = recipe.node.place, parent / name
    removed: dict[str, tuple[str, ...]] = {}
    before: Tree = {}
    trees = recipe.frames(recipe.node)
    for number, tree in enumerate(trees):
        frame = recording.difference(before, tree)
        removed |= {f"{number:02d}": frame.removed} if frame.removed else {}
        for path, text in frame.files.items():
            target = folder / f"{number:02d}" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
        before = tree
    scenario = Scenario(
        origin=Origin.MADE,
        about=recipe.about,
        frames_seconds=tuple(float(number) for number in range(len(trees))),
        node=NodeShape(CPUS * 1000, 8 * GIB),
        layout=CgroupShape(recipe.node.version, place.driver, place.root, place.runtime),
        pods=tuple(item.pod for item in recipe.node.pods),
        removed=removed,
    )
    (folder / "scenario.toml").write_text(recording.scenario_text(scenario))
    return folder


def main(arguments: list[str]) -> int:
    """DIR [NAME…]: writes the named scenarios, or all."""
    unknown = [name for name in arguments[1:] if name not in RECIPES]
    if not arguments or unknown:
        print(f"usage: make DIR [NAME…]; names: {', '.join(RECIPES)}", file=sys.stderr)
        return 2
    for name in arguments[1:] or RECIPES:
        print(make(name, Path(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
