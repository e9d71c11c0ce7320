"""The generator over TCP beside servers made here, and servers that are not installed."""

from __future__ import annotations

import shutil
import socketserver
import struct
import subprocess
import threading
import time
from pathlib import Path

import pytest

from bench.colocate.loads import LoadFault, Programs
from bench.colocate.servers import SERVERS, Server, serving
from bench.figures import UNANSWERED
from bench.native import c_compiler

ANSWER = b"y" * 3000


class Answering(socketserver.StreamRequestHandler):
    """An answer for each line; one that says `mute` gets none from then on."""

    def handle(self) -> None:
        while self.rfile.readline():
            self.wfile.write(ANSWER)


class Mute(Answering):
    """The first ten lines of each connection are answered."""

    def handle(self) -> None:
        for _ in range(10):
            self.rfile.readline()
            self.wfile.write(ANSWER)
        self.rfile.read()


@pytest.mark.skipif(c_compiler() is None, reason="needs a C compiler: apt-get install gcc libc6-dev")
@pytest.mark.parametrize(("handler", "answered_all"), [(Answering, True), (Mute, False)])
def test_each_request_has_its_answer(tmp_path: Path, handler: type[Answering], answered_all: bool) -> None:
    """By the order on its connection; what has no answer is told as unanswered, and nothing waits for ever."""
    program = Programs(tmp_path).path("generator")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        begin = time.monotonic_ns() + 1_500_000_000
        words = [server.server_address[1], 200, begin, 500_000_000, 1_000_000_000, 7, tmp_path / "out", 4, "ask\n"]
        subprocess.run([program, *map(str, words)], check=True, timeout=60, capture_output=True)
        server.shutdown()
    found = (tmp_path / "out").read_bytes()
    latencies = struct.unpack(f"{len(found) // 8}Q", found)
    assert len(latencies) > 100
    assert all(latency != UNANSWERED for latency in latencies) is answered_all
    assert all(latency < 60_000_000_000 for latency in latencies if latency != UNANSWERED)


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_serves(tmp_path: Path, name: str) -> None:
    """Where it is installed it answers; where not, the package is named."""
    server = SERVERS[name]
    try:
        server.program()
    except LoadFault as fault:
        assert server.package in str(fault)
        pytest.skip(str(fault))
    with serving(server, tmp_path / name, 2, []) as port:
        assert port > 0


def test_a_server_that_does_not_come_up_is_told(tmp_path: Path) -> None:
    """It ended at once."""
    ended = Server("ended", shutil.which("true") or "true", "coreutils", lambda program, *rest: [program], "?")
    with pytest.raises(LoadFault, match="does not answer"), serving(ended, tmp_path / "ended", 2, []):
        pass
