"""Real servers beside batch work: nginx, Redis and memcached, as Debian's packages have them, each with one request.

The request and its answer are always the same, so that the generator counts answers by their length.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from bench.colocate.loads import LoadFault, started
from bench.colocate.rows import RequestKind

CONNECTIONS = 64
_PER_SECOND_AND_CPU = 1500.0
_VALUE = "x" * 1024
_KEY = "k"
_READY_BOUND_SECONDS = 20.0
_SBIN = "/usr/sbin:/sbin"
"""Where Debian puts nginx; not on every PATH."""


class Server(msgspec.Struct, frozen=True):
    """A server program: what starts it in the foreground on a port with its files in a folder, and what is asked of it.

    `prepare` are bytes said once before anything is measured.
    """

    name: str
    executable: str
    package: str
    command: Callable[[str, Path, int, int], list[str]]
    request: str
    prepare: str = ""

    @property
    def kind(self) -> RequestKind:
        return RequestKind(self.name, 0.0, _PER_SECOND_AND_CPU)

    def program(self) -> str:
        """Its path. Raises LoadFault where it is not installed."""
        found = shutil.which(self.executable, path=f"{os.environ.get('PATH', '')}:{_SBIN}")
        if found is None:
            raise LoadFault(self.name, "is not installed", f"apt-get install --no-install-recommends {self.package}")
        return found


def _nginx(program: str, folder: Path, port: int, cpus: int) -> list[str]:
    content = folder / "content"
    content.mkdir(exist_ok=True)
    (content / _KEY).write_text(_VALUE)
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; worker_processes {cpus}; pid {folder}/nginx.pid; error_log {folder}/nginx.log; user root;\n"
        "events { worker_connections 1024; }\n"
        "http { access_log off; keepalive_requests 1000000000; keepalive_timeout 1h;\n"
        f"  server {{ listen 127.0.0.1:{port}; root {content}; }} }}\n"
    )
    return [program, "-e", f"{folder}/nginx.log", "-p", str(folder), "-c", str(configuration)]


def _redis(program: str, folder: Path, port: int, cpus: int) -> list[str]:
    words = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder))
    return [program, *words, "--logfile", f"{folder}/redis.log"]


def _memcached(program: str, folder: Path, port: int, cpus: int) -> list[str]:
    return [program, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", str(cpus), "-U", "0"]


SERVERS = {
    server.name: server
    for server in (
        Server("nginx", "nginx", "nginx-light", _nginx, f"GET /{_KEY} HTTP/1.1\r\nHost: bench\r\n\r\n"),
        Server("redis", "redis-server", "redis-server", _redis, f"GET {_KEY}\r\n", prepare=f"SET {_KEY} {_VALUE}\r\n"),
        Server(
            "memcached",
            "memcached",
            "memcached",
            _memcached,
            f"get {_KEY}\r\n",
            prepare=f"set {_KEY} 0 0 {len(_VALUE)}\r\n{_VALUE}\r\n",
        ),
    )
}


@contextmanager
def serving(server: Server, folder: Path, cpus: int, directories: Sequence[Path]) -> Iterator[int]:
    """The server at work in the cgroups of `directories`; its port. Raises LoadFault where it does not come up."""
    port = _free_port()
    folder.mkdir(exist_ok=True)
    command = server.command(server.program(), folder, port, cpus)
    # The shell waits until it has been moved; what it becomes, and all that forks from that, is in the cgroup by then.
    with started(
        ["sh", "-c", 'echo ready; read -r _; exec "$@" >/dev/null 2>&1', "sh", *command], directories
    ) as running:
        deadline = time.monotonic() + _READY_BOUND_SECONDS
        try:
            while not _said(port, server.prepare or server.request):
                if not running.alive or time.monotonic() > deadline:
                    raise LoadFault(server.name, f"does not answer on port {port}", f"its files are in {folder}")
                time.sleep(0.05)
            yield port
        finally:
            _kill_workers(running.pid)


def _kill_workers(pid: int) -> None:
    """They would outlive a server that is killed; while it stands still it starts no other."""
    with suppress(psutil.Error):
        server = psutil.Process(pid)
        server.suspend()
        for worker in server.children(recursive=True):
            worker.kill()


def _said(port: int, text: str) -> bool:
    """Something came back."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as line:
            line.sendall(text.encode())
            return bool(line.recv(4096))
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return int(line.getsockname()[1])
