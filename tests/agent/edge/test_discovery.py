"""Pods and containers that come and go, seen by the kernel's inotify on a made tree."""

from __future__ import annotations

import selectors
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from agent.core.observe.layout import CgroupDriver, Layout, PodDirectory
from agent.edge import discovery
from agent.edge.discovery import Discovery, Inotify, find_layout
from model.fault import KernelFault
from model.qos import KubernetesQoS

LAYOUTS = {
    "v1 cgroupfs": Layout("/kubepods"),
    "v1 systemd": Layout("/kubepods.slice", 1, CgroupDriver.SYSTEMD),
    "v2 nested cgroupfs": Layout("/kubelet/kubepods", 2),
    "v2 nested systemd": Layout("/kubelet.slice/kubelet-kubepods.slice", 2, CgroupDriver.SYSTEMD),
}


class Node:
    """A made cgroup tree."""

    def __init__(self, mount: Path, layout: Layout) -> None:
        self.mount = mount
        self.layout = layout
        self.tree = mount if layout.version == 2 else mount / "cpuacct"
        self.tree.mkdir(exist_ok=True)
        if layout.version == 2:
            (mount / "cgroup.controllers").touch()

    def roots(self) -> None:
        for path in (self.layout.best_effort, self.layout.burstable):
            (self.tree / path.lstrip("/")).mkdir(parents=True)

    def pod(self, uid: str, qos: KubernetesQoS = KubernetesQoS.BURSTABLE) -> Path:
        path = self.tree / self.layout.pod(qos, uid).lstrip("/")
        path.mkdir(exist_ok=True)
        return path

    def container(self, pod: Path, id_: str) -> Path:
        path = pod / (id_ if self.layout.driver is CgroupDriver.CGROUPFS else f"cri-containerd-{id_}.scope")
        path.mkdir()
        return path


@pytest.fixture(params=list(LAYOUTS.values()), ids=list(LAYOUTS))
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Node:
    made = Node(tmp_path, request.param)
    made.roots()
    return made


@pytest.fixture
def plain(tmp_path: Path) -> Node:
    return Node(tmp_path, Layout())


@pytest.fixture(params=[True, False], ids=["inotify", "blind"])
def watch(request: pytest.FixtureRequest) -> Iterator[Inotify | None]:
    inotify = Inotify() if request.param else None
    yield inotify
    if inotify:
        inotify.close()


def ids(found: Mapping[str, PodDirectory]) -> dict[str, list[str]]:
    return {uid: sorted(pod.containers) for uid, pod in found.items()}


def later(seen: Discovery, passes: int = 5) -> dict[str, list[str]]:
    """What is known after as many passes as a blind look may take."""
    for _ in range(passes - 1):
        seen.pods()
    return ids(seen.pods())


def test_what_exists_at_the_start(node: Node) -> None:
    """Pods of all classes with their containers, by uid and by id, with their paths."""
    for qos in KubernetesQoS:
        node.container(node.pod(f"uid-{qos.value}", qos), "c1")
    seen = Discovery.watching(node.mount, node.layout)
    found = seen.pods()
    assert ids(found) == {f"uid-{qos.value}": ["c1"] for qos in KubernetesQoS}
    web = found["uid-Burstable"]
    assert web.path == node.layout.pod(KubernetesQoS.BURSTABLE, "uid-Burstable")
    assert (node.tree / web.containers["c1"].lstrip("/")).is_dir()
    seen.close()


def test_cgroups_below_a_container_and_beside_kubepods_are_nobodys_pods(node: Node) -> None:
    """What a container makes of its own counts as the container's, by the kernel's own sums; pods that a kubelet puts
    outside kubepods (its system partition) are the system's, as every other tree there."""
    container = node.container(node.pod("a"), "c1")
    top = node.layout.root.split("/")[1]
    name = Path(node.layout.pod(KubernetesQoS.BURSTABLE, "deeper")).name
    beside = Path(node.layout.pod(KubernetesQoS.GUARANTEED, "system")).name
    for folder in (container / "own", container / name, container / "kubepods", node.tree / f"{top}-system" / beside):
        folder.mkdir(parents=True)
    seen = Discovery.watching(node.mount, node.layout)
    assert later(seen) == {"a": ["c1"]}
    (container / "later" / "deeper").mkdir(parents=True)
    assert later(seen) == {"a": ["c1"]}
    seen.close()


def test_changes_are_seen_in_the_next_pass(node: Node) -> None:
    """Create, grow, shrink, delete, create again under the same name; a quiet pass gives the very same mapping."""
    seen = Discovery.watching(node.mount, node.layout)
    assert seen.pods() == {}
    pod = node.pod("a")
    node.container(pod, "c1")
    assert ids(seen.pods()) == {"a": ["c1"]}
    second = node.container(pod, "c2")
    found = seen.pods()
    assert ids(found) == {"a": ["c1", "c2"]}
    assert seen.pods() is found
    second.rmdir()
    assert ids(seen.pods()) == {"a": ["c1"]}
    shutil.rmtree(pod)
    node.container(node.pod("a"), "c3")
    assert ids(seen.pods()) == {"a": ["c3"]}
    node.container(pod, "c4")
    assert ids(seen.pods()) == {"a": ["c3", "c4"]}
    shutil.rmtree(pod)
    assert seen.pods() == {}
    seen.close()


def readable(descriptor: int, seconds: float = 0) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def test_a_change_makes_the_descriptor_readable(plain: Node) -> None:
    """So that an event loop can start a tick; a pass drains it. Files are no change."""
    plain.roots()
    seen = Discovery.watching(plain.mount, plain.layout)
    seen.pods()
    descriptor = seen.fileno()
    assert descriptor is not None and not readable(descriptor)
    pod = plain.pod("a")
    assert readable(descriptor, 10)
    before = seen.pods()
    assert not readable(descriptor)
    (pod / "cgroup.procs").touch()
    assert seen.pods() is before
    seen.close()


def test_roots_that_come_late(plain: Node, watch: Inotify | None) -> None:
    """The agent may start before the kubelet; and the whole tree may be made again."""
    seen = Discovery(plain.mount, plain.layout, watch)
    assert later(seen) == {}
    for _ in range(2):
        plain.roots()
        plain.container(plain.pod("a", KubernetesQoS.BEST_EFFORT), "c1")
        assert later(seen, 10) == {"a": ["c1"]}
        shutil.rmtree(plain.tree / "kubepods")
        assert later(seen, 10) == {}


def test_without_inotify_a_change_is_seen_within_five_passes(node: Node) -> None:
    """Pods' directories are listed in turns."""
    seen = Discovery(node.mount, node.layout, None)
    seen.pods()
    assert seen.fileno() is None
    pod = node.pod("a")
    assert later(seen) == {"a": []}
    node.container(pod, "c1")
    assert later(seen) == {"a": ["c1"]}
    shutil.rmtree(pod)
    assert later(seen) == {}


@pytest.mark.parametrize("qos", list(KubernetesQoS))
def test_without_inotify_a_new_pod_is_seen_in_the_next_pass(node: Node, qos: KubernetesQoS) -> None:
    """Whoever is root in a container can use root's watches up; a pod's memory limit must not come later for it."""
    known = node.pod("known")
    node.container(known, "c1")
    seen = Discovery(node.mount, node.layout, None)
    seen.pods()
    for number in range(6):
        node.pod(f"a{number}", qos)
        assert f"a{number}" in seen.pods()


class FewWatches(Inotify):
    """A kernel at its limit of watches."""

    def add(self, path: str) -> int:
        raise OSError(28, "No space left on device")


class Overflowing(Inotify):
    """A queue that lost everything."""

    lost = False

    def read(self) -> Iterator[tuple[int, int]]:
        list(super().read())
        if self.lost:
            yield -1, discovery._IN_Q_OVERFLOW


def test_beyond_the_limit_of_watches(plain: Node, capsys: pytest.CaptureFixture[str]) -> None:
    """Listing goes on every few passes, and it is said once with the fix."""
    plain.roots()
    seen = Discovery(plain.mount, plain.layout, FewWatches())
    seen.pods()
    plain.pod("a")
    assert later(seen) == {"a": []}
    assert capsys.readouterr().out.count("max_user_watches") == 1
    seen.close()


def test_a_lost_queue_is_a_full_rescan(plain: Node) -> None:
    """An overflow says that anything may have changed."""
    plain.roots()
    first = plain.pod("a")
    inotify = Overflowing()
    seen = Discovery(plain.mount, plain.layout, inotify)
    seen.pods()
    plain.container(first, "c1")
    plain.pod("b")
    inotify.lost = True
    assert ids(seen.pods()) == {"a": ["c1"], "b": []}
    seen.close()


def test_a_lost_event_is_repaired_by_the_slow_rescan(plain: Node) -> None:
    """Thirty passes at most, in shares."""
    plain.roots()
    inotify = Overflowing()
    seen = Discovery(plain.mount, plain.layout, inotify)
    seen.pods()
    plain.pod("a")
    assert later(seen, 30) == {"a": []}
    seen.close()


def test_a_shortage_of_descriptors_forgets_no_pod(
    plain: Node,
    watch: Inotify | None,
    starved: Callable[[], AbstractContextManager[None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be listed stays as it was known, which is said once; the first pass that can list sees the change."""
    plain.roots()
    pod = plain.pod("a")
    plain.container(pod, "c1")
    seen = Discovery(plain.mount, plain.layout, watch)
    assert later(seen) == {"a": ["c1"]}
    plain.container(pod, "c2")
    with starved():
        assert later(seen, 31) == {"a": ["c1"]}
    assert ids(seen.pods()) == {"a": ["c1", "c2"]}
    assert capsys.readouterr().out.count("directory cannot be listed") == 1


def test_find_layout(node: Node) -> None:
    """By what exists, and by the operator's word, which must be true."""
    assert find_layout(node.mount) == node.layout
    assert find_layout(node.mount, node.layout.root) == node.layout
    with pytest.raises(KernelFault, match=r"/nope: does not exist .*--kubepods"):
        find_layout(node.mount, "/nope")


def test_no_cgroup_tree_at_all(tmp_path: Path) -> None:
    """One line with the path and the fix."""
    with pytest.raises(KernelFault, match=r"/cpuacct: does not exist .*--cgroup-root"):
        find_layout(tmp_path)
