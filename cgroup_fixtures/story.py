"""A small node's day in eight seconds, recorded from the kernel it runs on: `python -m cgroup_fixtures.story DIR`.

An online service of two containers works lightly, then surges; a batch job of two containers spins and writes below a
quota. Needs root. Cgroup v1 or v2, whichever is mounted; `--driver systemd` names the directories as systemd does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.core.observe.layout import CgroupDriver
from cgroup_fixtures.live import LiveTree
from cgroup_fixtures.names import Place, container_path, pod_path, qos_path
from cli.record import record_node
from model.qos import KubernetesQoS

NODE = "node"
ABOUT = "a service surges half-way, a batch job spins below a quota of half a CPU and writes 5 MiB a second to disk"
# Arguments: share of the time it works before and after the surge begins, seconds until then, MiB of memory it holds.
# In the surge it takes 256 KiB more each 100 ms.
WORKER = """
import sys, time
calm, busy, begins, mib = (float(word) for word in sys.argv[1:])
held = bytearray(b"x" * int(mib * 1048576))
began = time.monotonic()
while True:
    share = calm
    if time.monotonic() - began > begins:
        share = busy
        held += b"x" * 262144
    until = time.monotonic() + 0.1 * share
    while time.monotonic() < until:
        pass
    time.sleep(0.1 * (1 - share))
"""
# Arguments: a file or disk to write a MiB to each 200 ms, past the page cache.
WRITER = """
import mmap, os, sys, time
page = mmap.mmap(-1, 1048576)
target = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
while True:
    os.pwrite(target, page, 0)
    time.sleep(0.2)
"""


class StoryContainer(NamedTuple):
    """One container: its name, id, and what runs in it."""

    name: str
    id: str
    code: str
    arguments: tuple[str, ...]


class RecordedStory(NamedTuple):
    """The two pods; `surge_seconds` from the start until the service surges, `disk` is written to."""

    surge_seconds: float
    disk: str

    @property
    def service(self) -> tuple[StoryContainer, ...]:
        at = str(self.surge_seconds)
        return (
            StoryContainer("app", "a1" * 32, WORKER, ("0.2", "0.9", at, "24")),
            StoryContainer("proxy", "a2" * 32, WORKER, ("0.02", "0.2", at, "8")),
        )

    @property
    def job(self) -> tuple[StoryContainer, ...]:
        return (
            StoryContainer("train", "b1" * 32, WORKER, ("1", "1", "0", "32")),
            StoryContainer("writer", "b2" * 32, WRITER, (self.disk,)),
        )


SERVICE_UID = "5d3b8a54-0f0e-4f53-9a3d-0c3e5a1b7c01"
JOB_UID = "5d3b8a54-0f0e-4f53-9a3d-0c3e5a1b7c02"


def pods(story: RecordedStory) -> dict[str, object]:
    """What `kubectl get pods -o json` would say of the two."""
    batch = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "64Mi"}
    return {
        "items": [
            _pod("web", SERVICE_UID, "LS", {"cpu": "1", "memory": "128Mi"}, story.service),
            _pod("train", JOB_UID, "BE", batch, story.job),
        ]
    }


def _pod(
    name: str, uid: str, qos: str, requests: dict[str, str], parts: tuple[StoryContainer, ...]
) -> dict[str, object]:
    first, *others = ({"name": part.name} for part in parts)
    return {
        "metadata": {"name": name, "namespace": "default", "uid": uid, "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"nodeName": NODE, "containers": [{**first, "resources": {"requests": requests}}, *others]},
        "status": {
            "phase": "Running",
            "qosClass": "Burstable" if qos == "LS" else "BestEffort",
            "containerStatuses": [{"name": part.name, "containerID": f"containerd://{part.id}"} for part in parts],
        },
    }


def play(tree: LiveTree, place: Place, story: RecordedStory) -> None:
    """Make the cgroups, limit best effort to half a CPU, start everything."""
    containers = [
        (container_path(place, pod_path(place, qos, uid), part.id), part)
        for qos, uid, parts in (
            (KubernetesQoS.BURSTABLE, SERVICE_UID, story.service),
            (KubernetesQoS.BEST_EFFORT, JOB_UID, story.job),
        )
        for part in parts
    ]
    for cgroup, _ in containers:
        tree.make(cgroup)
    limits = (
        {"cpu.weight": "1", "cpu.max": "50000 100000"} if tree.v2 else {"cpu.shares": "2", "cpu.cfs_quota_us": "50000"}
    )
    for file, value in limits.items():
        (tree.folder(qos_path(place, KubernetesQoS.BEST_EFFORT), "cpu") / file).write_text(value)
    for cgroup, part in containers:
        if not tree.v2:
            _count_writes(tree.folder(cgroup, "blkio"), story.disk)
        tree.run(cgroup, part.code, *part.arguments)


def _count_writes(folder: Path, disk: str) -> None:
    """Newer kernels count a v1 group's bytes only where a throttle rule stands: one far above any disk's speed."""
    device = Path(disk).parent.stat().st_dev
    # The kernel knows no such rule for a device that is no disk, such as a tmpfs.
    with suppress(OSError):
        (folder / "blkio.throttle.write_bps_device").write_text(f"{os.major(device)}:{os.minor(device)} {1 << 40}")


def main(arguments: list[str]) -> None:
    """Play, record, remove everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--top", default="", help="a cgroup of ours to put kubepods in")
    parser.add_argument("--driver", type=CgroupDriver, default=CgroupDriver.CGROUPFS)
    parser.add_argument("--disk", default="", help="a blank disk the job may write to; a temporary file if left out")
    parser.add_argument("--frames", type=int, default=8)
    given = parser.parse_args(arguments)
    name = "kubepods.slice" if given.driver is CgroupDriver.SYSTEMD else "kubepods"
    place = Place(f"{given.top}/{name}", given.driver, "containerd")
    tree = LiveTree(given.top or name)
    with tempfile.TemporaryDirectory(prefix="sublet-story-") as temporary:
        story = RecordedStory(given.frames / 2, given.disk or f"{temporary}/written")
        listing = Path(temporary) / "pods.json"
        listing.write_text(json.dumps(pods(story)))
        try:
            play(tree, place, story)
            time.sleep(1.0)
            record_node(
                Path(given.directory),
                frames=given.frames,
                kubepods=place.root,
                node_name=NODE,
                about=ABOUT,
                pods=listing,
            )
        finally:
            tree.remove()


if __name__ == "__main__":
    main(sys.argv[1:])
