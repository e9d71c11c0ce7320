"""Ways into pods on the simulated kernel, which is what an ordinary user's `sublet up` has."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.tests.conformance.kubectl import binaries
from tests.local.node.streams.test_streams_e2e import ECHO, environment
from tests.local.node.test_node_e2e import DEADLINE_SECONDS, Cluster, until

pytestmark = pytest.mark.e2e

WAYS = ("websocket", "spdy")


class Simulated(Cluster):
    @property
    def node_flags(self) -> list[str]:
        return [*super().node_flags, "--kernel", "simulated", "--cgroup-root", f"{self.directory}/cgroups"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    if not binaries():
        pytest.skip("no kubectl; install the extra `dev`")
    made = Simulated(tmp_path_factory.mktemp("cluster"), str(list(binaries().values())[-1]))
    try:
        made.start_server()
        made.start_node()
        address = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        made.apply("work", ["python3", "-u", "-c", ECHO], container={"env": [address]}, terminationGracePeriodSeconds=0)
        made.kubectl("wait", "--for=condition=Ready", "pod/work", "--timeout=60s")
        yield made
    finally:
        made.stop()
        for log in ("api.log", "node.log"):
            assert "Traceback" not in (made.directory / log).read_text()


def command(cluster: Cluster, *words: str) -> list[str]:
    here = cluster.directory
    return [str(list(binaries().values())[-1]), f"--kubeconfig={here}/kubeconfig", f"--cache-dir={here}/cache", *words]


@pytest.mark.parametrize("way", WAYS)
def test_exec_and_cp(cluster: Simulated, way: str, tmp_path: Path) -> None:
    def run(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command(cluster, *words), input=stdin, capture_output=True, timeout=DEADLINE_SECONDS, env=environment(way)
        )

    done = run("exec", "work", "--", "sh", "-c", "echo $IP; echo wrong >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, cluster.get("pod", "work")["status"]["podIP"].encode() + b"\n")
    lots = os.urandom(300_000)
    assert run("exec", "-i", "work", "--", "cat", stdin=lots).stdout == lots
    (tmp_path / "there").write_bytes(lots)
    assert run("cp", str(tmp_path / "there"), f"work:there-{way}").returncode == 0
    assert run("cp", f"work:there-{way}", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back").read_bytes() == lots


@pytest.mark.parametrize("way", WAYS)
def test_port_forward(cluster: Simulated, way: str) -> None:
    """To what processes of the simulated cgroup listen on, and to no other port."""
    ports = until(lambda: cluster.kubectl("logs", "work").split(), "the servers listen")
    with socket.create_server(("127.0.0.1", 0)) as strange:
        words = [f":{port}" for port in (ports[0], strange.getsockname()[1])]
        process = subprocess.Popen(
            command(cluster, "port-forward", "pod/work", *words), stdout=subprocess.PIPE, env=environment(way)
        )
        assert process.stdout is not None
        try:
            lines = (process.stdout.readline().decode() for _ in range(4))
            local = [int(each.split()[2].rpartition(":")[2]) for each in lines if "127.0.0.1" in each]
            with socket.create_connection(("127.0.0.1", local[0]), DEADLINE_SECONDS) as connection:
                connection.sendall(b"word")
                assert connection.recv(4) == b"WORD"
            with (
                socket.create_connection(("127.0.0.1", local[1]), DEADLINE_SECONDS) as refused,
                contextlib.suppress(ConnectionError),
            ):
                assert refused.recv(1) == b""
            strange.settimeout(0)
            with pytest.raises(BlockingIOError):
                strange.accept()
        finally:
            process.terminate()
            process.communicate()
