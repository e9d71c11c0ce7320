"""`sublet top` against an API server: one table, JSON, and one line for whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import grpc
import pytest

from cli.main import main
from local.kubeconfig import kubeconfig
from local.rundir import Endpoints, RunDirectory
from model.queue import CellStanding, Queue, QueueStanding
from wire import queue_codec
from wire.v1 import scheduler_pb2, scheduler_pb2_grpc

READY = [{"type": "Ready", "status": "True"}]
AMOUNTS = {"cpu": "4", "memory": "8Gi", "kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "2Gi"}
NODE = {"metadata": {"name": "n-1", "uid": "1"}, "status": {"allocatable": AMOUNTS, "conditions": READY}}
BATCH = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "1Gi"}
POD = {
    "metadata": {"name": "p", "namespace": "d", "uid": "2", "labels": {"koordinator.sh/qosClass": "BE"}},
    "spec": {"nodeName": "n-1", "containers": [{"name": "a", "resources": {"requests": BATCH, "limits": BATCH}}]},
    "status": {"phase": "Running"},
}
USAGE = {"metadata": {"name": "n-1"}, "usage": {"cpu": "1250m", "memory": "2Gi"}}


class Scheduler(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Knows one queue."""

    def ListQueues(self, request: Any, context: Any) -> Any:
        standing = QueueStanding(Queue("train"), cells={("", "cpu"): CellStanding(used=5)})
        return scheduler_pb2.ListQueuesResponse(queues=[queue_codec.standing_to_wire(standing)])


class Server(BaseHTTPRequestHandler):
    """Nodes, pods and metrics.k8s.io; NodeMetric is not defined. `refusal` answers everything instead."""

    refusal: tuple[int, str] | None = None
    lists: ClassVar[dict[str, list[Any]]] = {
        "/api/v1/nodes": [NODE],
        "/api/v1/pods": [POD],
        "/apis/metrics.k8s.io/v1beta1/nodes": [USAGE],
    }

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        found = self.lists.get(path.path)
        if self.refusal:
            self._answer(self.refusal[0], {"kind": "Status", "message": self.refusal[1]})
        elif found is None:
            self._answer(404, {"kind": "Status", "message": "not found"})
        elif "watch" in parse_qs(path.query):
            self.send_response(200)
            self.end_headers()
        else:
            self._answer(200, {"metadata": {"resourceVersion": "1"}, "items": found})

    def _answer(self, code: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Its kubeconfig."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    path = tmp_path / "kubeconfig"
    text = kubeconfig(f"127.0.0.1:{server.server_address[1]}", b"", "t").decode()
    path.write_text(text.replace("https://", "http://"))
    yield str(path)
    Server.refusal = None
    server.shutdown()
    server.server_close()


def test_nodes(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Use is metrics.k8s.io's where no NodeMetric is; what lent pods use is then not known."""
    assert main(["top", "--once", "--kubeconfig", cluster]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("n-1"))
    assert row.split() == [
        "n-1",
        "Ready",
        "4.0",
        "0.0",
        "1.2",
        "1.5",
        "0.5",
        "-",
        "8.0",
        "0.0",
        "2.0",
        "2.0",
        "1.0",
        "-",
        "1",
    ]


def test_json(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact numbers, of nodes with their sum and of pods."""
    assert main(["top", "-o", "json", "--kubeconfig", cluster]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"][0]["cpu"]["used"] == found["total"]["cpu"]["used"] == 1250
    assert main(["top", "pods", "-o", "json", "--kubeconfig", cluster]) == 0
    assert json.loads(capsys.readouterr().out)[0]["requested"] == {"cpu_millis": 500, "memory_bytes": 1 << 30}


@pytest.mark.parametrize(
    ("refusal", "words"), [((401, "Unauthorized"), "401 Unauthorized"), ((403, "nodes is forbidden"), "forbidden")]
)
def test_a_refusal_is_one_line(
    cluster: str, refusal: tuple[int, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the server's words."""
    Server.refusal = refusal
    assert main(["top", "--once", "--kubeconfig", cluster]) == 2
    told = capsys.readouterr().err
    assert words in told and told.count("\n") == 1


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What to do about it, by where it was looked for."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(["top", "--once"]) == 2
    assert "start one with `sublet up`" in capsys.readouterr().err
    assert main(["top", "--once", "--dir", str(tmp_path / "x")]) == 2
    assert "no embedded cluster runs here" in capsys.readouterr().err
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    assert main(["top", "--once"]) == 2
    assert f"{tmp_path}/a: no such file" in capsys.readouterr().err
    assert main(["top", "gangs", "--once"]) == 2
    assert "no embedded cluster runs here" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["queues", "--once"], ["--queues", "--once"]])
def test_queues(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Asked of the scheduler, by either way to say it."""
    server = grpc.server(ThreadPoolExecutor(1))
    scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(Scheduler(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        assert main(["top", *words, "--scheduler", f"127.0.0.1:{port}"]) == 0
    finally:
        server.stop(None)
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()[1:]] == [["train", "Open", "cpu"]]


def test_two_tables_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """One is asked for."""
    assert main(["top", "pods", "--queues", "--once"]) == 2
    assert "pods and --queues: are two tables (ask for one of them)" in capsys.readouterr().err


def test_a_server_that_is_away(tmp_path: Path, cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Named at once: nobody waits for a watch."""
    away = tmp_path / "away"
    away.write_bytes(kubeconfig("127.0.0.1:9", b"", "t").replace(b"https://", b"http://"))
    assert main(["top", "--once", "--kubeconfig", str(away)]) == 2
    assert "no answer from http://127.0.0.1:9" in capsys.readouterr().err


def test_the_kubeconfig_of_a_run_that_was_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens where it points; what is said is that the cluster is gone."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / ".sublet" / "kubeconfig"))
    run = RunDirectory(tmp_path / ".sublet")
    with run:
        told = Endpoints(
            id="a", directory=str(run.path), kubeconfig=str(run.kubeconfig), node="n", up_pid=1, up_ticks=1
        )
        run.kubeconfig.write_text(kubeconfig("127.0.0.1:1", b"", "t").decode())
        run.publish(told)
        assert main(["top", "--once"]) == 2
    assert f"error: {run.path}: no embedded cluster runs here" in capsys.readouterr().err
