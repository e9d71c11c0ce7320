"""A leader that dies, is stopped or is cut off in the middle of a gang, as processes over TLS."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scheduler_processes import POD_GROUP_CRD, Cluster, SchedulerProcess, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# One binding at a time, so that there is a middle; a lease that others may take soon.
SETTINGS = """
concurrent_binds: 1
lease: {duration_seconds: 3, renew_deadline_seconds: 2, retry_seconds: 0.2}
"""
MEMBERS = 100
NODES = 4


@pytest.fixture
def start(cluster: Cluster) -> Iterator[Callable[[str], SchedulerProcess]]:
    """Starts a scheduler of that name, which is not waited for; all are ended afterwards, as is the API server."""
    started: list[SchedulerProcess] = []

    def begin(name: str) -> SchedulerProcess:
        started.append(SchedulerProcess(cluster, SETTINGS, name))
        return started[-1]

    yield begin
    for item in started:
        item.process.kill()
        item.process.wait(10)
    cluster.process.send_signal(signal.SIGCONT)


@pytest.fixture
def gang(cluster: Cluster) -> Callable[[], None]:
    """Makes the nodes, which a gang of that size fills exactly, and the gang."""

    def make() -> None:
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POD_GROUP_CRD)
        for number in range(NODES):
            cluster.add_node(f"n{number}", batch_cpu=MEMBERS // NODES * 100)
        for number in range(MEMBERS):
            cluster.add_pod(f"train-{number}", batch_cpu=100, gang="train")
        cluster.add_gang("train", MEMBERS)

    return make


def bound(cluster: Cluster) -> dict[str, str]:
    """Node by pod."""
    pods = cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def filled(cluster: Cluster) -> bool:
    """The whole gang is bound, and no node holds more than it has."""
    nodes = list(bound(cluster).values())
    assert all(nodes.count(node) <= MEMBERS // NODES for node in nodes)
    return len(nodes) == MEMBERS


def link_processes(parent: int) -> list[int]:
    """Processes that serve links for this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
        except (OSError, IndexError):
            continue
    return found


def ended(pids: list[int]) -> bool:
    """None of them is there any more."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def in_the_middle(cluster: Cluster, leader: SchedulerProcess) -> None:
    """Some members are bound, and most are not."""
    until(lambda: bool(bound(cluster)), "the first is bound", leader.log)


def leader_and_standby(start: Callable[[str], SchedulerProcess]) -> tuple[SchedulerProcess, SchedulerProcess]:
    """The first serves, and the second waits for it to go."""
    leader = start("first")
    leader.wait()
    standby = start("second")
    until(lambda: "waiting for the leader to go" in standby.log.read_text(), "the second waits", standby.log)
    return leader, standby


def test_a_killed_leader_is_followed(
    cluster: Cluster, start: Callable[[str], SchedulerProcess], gang: Callable[[], None]
) -> None:
    """kill -9 half-way through a gang: the standby completes it, and what is bound stays where it is."""
    leader, standby = leader_and_standby(start)
    links = link_processes(leader.process.pid)
    assert len(links) == 1
    gang()
    in_the_middle(cluster, leader)
    leader.process.send_signal(signal.SIGKILL)
    leader.process.wait(5)
    before = bound(cluster)
    assert 0 < len(before) < MEMBERS
    standby.wait()
    until(lambda: filled(cluster), "the gang is completed", standby.log)
    assert before.items() <= bound(cluster).items()
    assert "Traceback" not in standby.log.read_text()
    until(lambda: ended(links), "no process of the first is left")


def test_a_stop_in_the_middle_is_clean(
    cluster: Cluster, start: Callable[[str], SchedulerProcess], gang: Callable[[], None]
) -> None:
    """SIGTERM with a hundred bindings under way: 0, soon, the gang bound to its end, or told how far it came; the next
    one completes it where that took too long.
    """
    leader = start("first")
    leader.wait()
    links = link_processes(leader.process.pid)
    gang()
    in_the_middle(cluster, leader)
    leader.process.send_signal(signal.SIGTERM)
    assert leader.process.wait(15) == 0
    told = leader.log.read_text()
    assert filled(cluster) != ("stopping before all bindings are answered" in told), told
    assert "Traceback" not in told and "never retrieved" not in told, told
    assert ended(links)
    lease = cluster.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/sublet-scheduler")
    assert lease["spec"]["holderIdentity"] == ""
    follower = start("second")
    follower.wait()
    until(lambda: filled(cluster), "the gang is completed", follower.log)


def test_a_leader_that_is_cut_off_goes_on(
    cluster: Cluster, start: Callable[[str], SchedulerProcess], gang: Callable[[], None]
) -> None:
    """An API server that does not answer past the lease's duration: nobody else has it, so the same process goes on."""
    leader = start("first")
    leader.wait()
    gang()
    in_the_middle(cluster, leader)
    cluster.process.send_signal(signal.SIGSTOP)
    until(lambda: "not leading until the lease is renewed" in leader.log.read_text(), "it stops acting", leader.log)
    time.sleep(4)
    cluster.process.send_signal(signal.SIGCONT)
    until(lambda: filled(cluster), "the gang is completed", leader.log)
    told = leader.log.read_text()
    assert leader.process.poll() is None and "leading again" in told and "Traceback" not in told, told


def test_a_leader_that_was_replaced_ends_and_says_why(
    cluster: Cluster, start: Callable[[str], SchedulerProcess], gang: Callable[[], None]
) -> None:
    """Held up for longer than its lease: the standby completes the gang, the first writes no more and ends with 1."""
    leader, standby = leader_and_standby(start)
    links = link_processes(leader.process.pid)
    gang()
    in_the_middle(cluster, leader)
    leader.process.send_signal(signal.SIGSTOP)
    standby.wait()
    leader.process.send_signal(signal.SIGCONT)
    assert leader.process.wait(30) == 1
    told = leader.log.read_text()
    assert "Traceback" not in told and "never retrieved" not in told, told
    assert told.splitlines()[-1].startswith("error: lease kube-system/sublet-scheduler: held by second now"), told
    until(lambda: filled(cluster), "the gang is completed", standby.log)
    assert ended(links)
