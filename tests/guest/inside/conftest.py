"""Inside the guest: real cgroup v2, nobody else in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgroup_fixtures.live import LiveTree
from tests.guest.inside.live_node import LiveNode

CONTAINER = "c1" * 32


class Pods:
    """A kubepods tree as kubelet makes it; `burstable` and `best_effort` are one pod's container each."""

    def __init__(self) -> None:
        self.tree = LiveTree(f"sublet-{secrets.token_hex(4)}")
        self.root = f"/{self.tree.top}/kubepods"
        self.burstable = f"{self.root}/burstable/pod1111/{CONTAINER}"
        self.best_effort = f"{self.root}/besteffort/pod2222/{CONTAINER}"
        for cgroup in (self.burstable, self.best_effort):
            self.tree.make(cgroup)

    def read(self, cgroup: str, file: str) -> bytes:
        return (self.tree.folder(cgroup) / file).read_bytes()

    def write(self, cgroup: str, file: str, text: str) -> None:
        (self.tree.folder(cgroup) / file).write_text(text)


@pytest.fixture
def pods() -> Iterator[Pods]:
    made = Pods()
    yield made
    made.tree.remove()


@pytest.fixture
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LiveNode]:
    """One at a time: the agent looks for the only kubepods there is. A parameter is where that lies."""
    made = LiveNode(tmp_path, getattr(request, "param", "/kubepods"))
    yield made
    made.close()
