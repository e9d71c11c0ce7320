"""exec, attach, cp and port-forward through every kubectl of this machine and the Python client, on real pods.

With `--kubeconfig FILE` through that cluster's API server, which `sublet up --join` joins. A kubectl is found beside this
interpreter and on PATH, as `kubectl`, or beside one of that name as `kubectl.1.NN`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any

import kubernetes
import psutil
import pytest

from embedded.cgroups.hierarchy import UnsuitableKernel, discover
from embedded.node.processes.mounting import images_possible
from embedded.tests.conformance.kubectl import binaries
from tests.local.node.test_node_e2e import DEADLINE_SECONDS, Cluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.kernel]

VERSIONS = list(binaries())
WAYS = ("websocket", "spdy")
CLIENTS = [pytest.param(v, way, id=f"{v} {way}") for v in VERSIONS for way in WAYS]
NEWEST = CLIENTS[-2:]
# Every kubectl in the slow tier, the newest always.
SLOWLY = [
    *(pytest.param(v, way, id=f"{v} {way}", marks=pytest.mark.slow) for v in VERSIONS[:-1] for way in WAYS),
    *NEWEST,
]

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: work}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: python:3.9
    command: [python3, -u, -c, %(echo)s]
    env: [{name: WORD, value: of the container}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]
    resources: {limits: {memory: 200Mi}}
  - {name: other, image: busybox, command: [sleep, "1000"]}
---
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers:
  - {name: main, image: busybox, stdin: true, stdinOnce: true, command: [sh, -c, 'while read line; do echo "heard $line"; done; echo over']}
---
apiVersion: v1
kind: Pod
metadata: {name: console}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers:
  - {name: main, image: busybox, stdin: true, tty: true, command: [sh, -c, 'tty >/dev/null && while read line; do echo "heard $line"; done']}
"""
# Two ports: one at the pod's address, one at 127.0.0.1, which in a cluster only the pod itself reaches.
ECHO = """
import os, socketserver, threading
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data.upper())
socketserver.ThreadingTCPServer.allow_reuse_address = True
servers = [socketserver.ThreadingTCPServer((host, 0), Echo) for host in (os.environ["IP"], "127.0.0.1")]
print(*(each.server_address[1] for each in servers))
for each in servers:
    threading.Thread(target=each.serve_forever).start()
"""


MARK = "A_VARIABLE_OF_THE_NODE"


class Joined(Cluster):
    """A node of `sublet up` on somebody else's API server."""

    def __init__(self, directory: Path, kubectl: str, kubeconfig: str) -> None:
        super().__init__(directory, kubectl)
        (directory / "kubeconfig").write_bytes(Path(kubeconfig).read_bytes())
        (directory / "api.log").touch()
        # One directory with its logs each time, whose path a socket's may follow.
        self._up = Path(tempfile.mkdtemp(prefix="sublet-e2e-"))

    def start_server(self) -> None:
        """It runs already."""

    def start_node(self) -> subprocess.Popen[bytes]:
        images = ["--images", f"{self.directory}/images"] if (self.directory / "images").is_dir() else []
        joining = ["--join", f"{self.directory}/kubeconfig", "--bare", "--node-name", "n1", "--dir", str(self._up)]
        up = self.program("cli", "up", *joining, *images, log="node.log")
        told = self.directory / "node.log"
        until(lambda: "ready after" in told.read_text() or up.poll() is not None, "the node is ready")
        assert up.poll() is None, told.read_text()
        endpoints = json.loads((self._up / "endpoints.json").read_text())
        self.id = endpoints["cgroup_prefix"].removeprefix("/sublet-")
        return up

    @property
    def node_pid(self) -> int:
        children = psutil.Process(self._processes[-1].pid).children(recursive=True)
        return next(each.pid for each in children if "local.node" in each.cmdline())

    def stop(self) -> None:
        """The pods first: they belong to the cluster, which stays."""
        with contextlib.suppress(AssertionError):
            self.kubectl("delete", "pod", "--all", "--wait=false")
        for up in self._processes:
            up.send_signal(signal.SIGINT)
            up.wait(DEADLINE_SECONDS)
        shutil.rmtree(self._up, ignore_errors=True)


class Site:
    """A cluster of one node with the pods above."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.start_node()
        cluster.kubectl("apply", "-f", "-", stdin=PODS % {"echo": json.dumps(ECHO)})
        cluster.kubectl("wait", "--for=condition=Ready", "pod", "--all", "--timeout=60s")
        self.ports = until(lambda: cluster.kubectl("logs", "work", "-c", "main").split(), "the servers listen")

    def command(self, version: str, *words: str) -> list[str]:
        here = self.cluster.directory
        return [
            str(binaries()[version]),
            f"--kubeconfig={here}/kubeconfig",
            f"--cache-dir={here}/cache-{version}",
            *words,
        ]

    def run(self, client: tuple[str, str], *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(client[0], *words),
            input=stdin,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            env=environment(client[1]),
        )

    def left(self, words: str) -> list[str]:
        """Processes of the pods whose command line has these words."""
        found = []
        pids: list[str] = []
        for directory in self.cluster.cgroups():
            with contextlib.suppress(OSError):  # a cgroup that ends
                pids += (directory / "cgroup.procs").read_text().split()
        for pid in pids:
            with contextlib.suppress(OSError):  # or a process
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found += [pid] if words in line else []
        return found


def environment(way: str) -> dict[str, str]:
    over = str(way == "websocket").lower()
    return {**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": over, "KUBECTL_PORT_FORWARD_WEBSOCKETS": over}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Site]:
    try:
        discover(Path("/sys/fs/cgroup"), "probe")
    except UnsuitableKernel as reason:
        pytest.skip(f"{reason}; run as root on a machine with cgroup v1")
    if not VERSIONS:
        pytest.skip("no kubectl; install the extra `dev`")
    elsewhere = request.config.getoption("--kubeconfig")
    directory, kubectl = tmp_path_factory.mktemp("cluster"), str(binaries()[VERSIONS[-1]])
    cluster = Joined(directory, kubectl, elsewhere) if elsewhere else Cluster(directory, kubectl)
    cluster.id = f"streams-{os.getpid()}"
    with contextlib.suppress(pytest.skip.Exception):
        (cluster.directory / "images").symlink_to(request.getfixturevalue("image_store"))
    try:
        cluster.start_server()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(MARK, "its own")
            made = Site(cluster)
        descriptors = Path(f"/proc/{cluster.node_pid}/fd")
        before = len(list(descriptors.iterdir()))
        yield made
        until(lambda: len(list(descriptors.iterdir())) <= before + 4, "the node has closed what it opened")
    finally:
        cluster.stop()
        for log in ("api.log", "node.log"):
            assert "Traceback" not in (cluster.directory / log).read_text(), (cluster.directory / log).read_text()


@pytest.mark.parametrize(("version", "way"), CLIENTS)
def test_exec(site: Site, version: str, way: str) -> None:
    """Its output and errors apart, its input to the end, its exit code, in the container's environment and cgroup."""
    client = (version, way)
    done = site.run(client, "exec", "work", "-c", "main", "--", "sh", "-c", "echo $WORD; echo wrong >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, b"of the container\n"), done.stderr
    assert done.stderr.startswith(b"wrong\n") and b"command terminated with exit code 7" in done.stderr
    lots = os.urandom(300_000)
    done = site.run(client, "exec", "-i", "work", "-c", "main", "--", "cat", stdin=lots)
    assert (done.returncode, done.stdout == lots, done.stderr) == (0, True, b"")
    done = site.run(client, "exec", "work", "-c", "main", "--", "cat", "/proc/self/cgroup")
    assert all(site.cluster.id in line for line in done.stdout.decode().splitlines() if ":memory:" in line)
    assert b":memory:" in done.stdout


def test_nothing_of_the_node(site: Site) -> None:
    """Neither its variables nor what it has open: input, output and errors alone."""
    client = (VERSIONS[-1], "websocket")
    done = site.run(client, "exec", "work", "-c", "main", "--", "sh", "-c", "ls /proc/$$/fd; pwd; env")
    assert done.stdout.split()[:3] == [b"0", b"1", b"2"] and done.stdout.split()[3].startswith(b"/"), done.stdout
    assert b"WORD=" in done.stdout and MARK.encode() not in done.stdout


REFUSALS = [
    pytest.param(["exec", "work", "-c", "main", "--", "nonesuch"], "executable file not found in $PATH", id="no such command"),
    pytest.param(["exec", "work", "-c", "none", "--", "true"], "container none is not valid for pod work", id="no such container"),
    pytest.param(["exec", "none", "--", "true"], 'pods "none" not found', id="no such pod"),
    pytest.param(["attach", "work", "-c", "none"], "none", id="nothing to attach to"),
]  # fmt: skip


@pytest.mark.parametrize(("version", "way"), NEWEST)
@pytest.mark.parametrize(("words", "told"), REFUSALS)
def test_refusals(site: Site, version: str, way: str, words: list[str], told: str) -> None:
    done = site.run((version, way), *words)
    assert done.returncode == 1 and told in done.stderr.decode()


@pytest.mark.parametrize(("version", "way"), CLIENTS)
def test_cp(site: Site, version: str, way: str, tmp_path: Path) -> None:
    """Both ways, a directory with a large file and a link."""
    source, back = tmp_path / "source", tmp_path / "back"
    (source / "below").mkdir(parents=True)
    content = os.urandom(2 << 20)
    (source / "below" / "large").write_bytes(content)
    there = f"copied-{version}-{way}"
    done = site.run((version, way), "cp", str(source), f"work:{there}", "-c", "main")
    assert done.returncode == 0, done.stderr
    done = site.run((version, way), "cp", f"work:{there}", str(back), "-c", "main")
    assert done.returncode == 0, done.stderr
    assert (back / "below" / "large").read_bytes() == content


@pytest.mark.parametrize(("version", "way"), SLOWLY)
def test_cp_of_a_large_file(site: Site, version: str, way: str, tmp_path: Path) -> None:
    source, back, there = tmp_path / "source", tmp_path / "back", f"large-{version}-{way}"
    content = os.urandom(20 << 20)
    source.write_bytes(content)
    for words in ([str(source), f"work:{there}"], [f"work:{there}", str(back)]):
        done = site.run((version, way), "cp", *words, "-c", "main")
        assert done.returncode == 0, done.stderr
    assert back.read_bytes() == content
    site.run((version, way), "exec", "work", "-c", "main", "--", "rm", there)


@contextlib.contextmanager
def terminal(site: Site, client: tuple[str, str], *words: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """kubectl with a terminal of 100 by 30 characters, whose other end is given."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        site.command(client[0], *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(client[1]),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def expect(terminal: int, words: bytes) -> bytes:
    """What it shows until these words come."""
    seen, deadline = b"", time.monotonic() + DEADLINE_SECONDS
    while words not in seen:
        assert select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0], seen
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            raise AssertionError(seen) from None
    return seen


@pytest.mark.parametrize(("version", "way"), CLIENTS)
def test_terminal(site: Site, version: str, way: str) -> None:
    """A shell on a terminal of the client's size, which follows it; its exit code comes back."""
    with terminal(site, (version, way), "exec", "-it", "work", "-c", "main", "--", "sh") as (shell, process):
        os.write(shell, b"stty size; tty; echo $TERM\n")
        assert b"30 100\r\n/dev/pts/" in expect(shell, b"xterm\r\n")
        ioctl(shell, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.kill(process.pid, signal.SIGWINCH)

        def followed() -> bool:
            os.write(shell, b"stty size; echo en''d\n")
            return b"40 120" in expect(shell, b"end\r\n")

        until(followed, "the terminal has the new size")
        os.write(shell, b"sleep 54321\n")
        until(lambda: site.left("sleep 54321"), "it runs")
        os.write(shell, b"\x03")
        os.write(shell, b"echo st''ill; exit 3\n")
        expect(shell, b"still\r\n")
        assert process.wait(DEADLINE_SECONDS) == 3


@pytest.mark.parametrize(("version", "way"), NEWEST)
def test_client_leaves(site: Site, version: str, way: str) -> None:
    """A terminal is hung up, which ends what it runs; without one, input and output end."""
    with terminal(site, (version, way), "exec", "-it", "work", "-c", "main", "--", "sleep", "65432"):
        until(lambda: site.left("sleep 65432"), "it runs")
    until(lambda: not site.left("sleep 65432"), "it has ended")
    writer = subprocess.Popen(
        site.command(version, "exec", "-i", "work", "-c", "main", "--", "sh", "-c", "cat; echo 65433; sleep 0; exec cat /dev/zero"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(way),
    )  # fmt: skip
    until(lambda: site.left("65433"), "it runs")
    writer.kill()
    writer.communicate()
    until(lambda: not site.left("65433") and not site.left("cat /dev/zero"), "it has ended")


@pytest.mark.parametrize(("version", "way"), CLIENTS)
def test_port_forward(site: Site, version: str, way: str) -> None:
    """Several connections side by side to both ports, at whatever address the pod listens; nobody else's ports."""
    with socket.create_server(("127.0.0.1", 0)) as strange:
        other = strange.getsockname()[1]
        words = [f":{port}" for port in (*site.ports, other)]
        process = subprocess.Popen(
            site.command(version, "port-forward", "pod/work", *words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(way),
        )
        assert process.stdout is not None
        try:
            local: list[int] = []
            while len(local) < 3:
                line = process.stdout.readline().decode()
                assert line, process.stderr and process.stderr.read()
                if "127.0.0.1" in line:
                    local.append(int(line.split()[2].rpartition(":")[2]))
            connections = [socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) for port in local[:2] * 4]
            for number, each in enumerate(connections):
                each.sendall(f"number {number}".encode() * 20_000)
            for number, each in reversed(list(enumerate(connections))):
                wanted = f"NUMBER {number}".encode() * 20_000
                seen = b""
                while len(seen) < len(wanted):
                    seen += each.recv(65536)
                assert seen == wanted
                each.close()
            refused = socket.create_connection(("127.0.0.1", local[2]), DEADLINE_SECONDS)
            assert refused.recv(1) == b""
            refused.close()
            strange.settimeout(0)
            with pytest.raises(BlockingIOError):
                strange.accept()
        finally:
            process.terminate()
            process.communicate()


@pytest.mark.parametrize(("version", "way"), SLOWLY)
def test_attach(site: Site, version: str, way: str) -> None:
    """What a main process writes from now on, and with `stdin` what it reads, with `stdinOnce` to the end."""
    process = subprocess.Popen(
        site.command(version, "attach", "-i", "talker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(way),
    )
    assert process.stdin and process.stdout
    process.stdin.write(b"one\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"heard one\n"
    process.stdin.write(b"two\n")
    process.stdin.close()
    assert process.stdout.read() == b"heard two\nover\n"
    assert process.wait(DEADLINE_SECONDS) == 0
    site.cluster.await_phase("talker", "Succeeded")
    assert site.cluster.kubectl("logs", "talker") == "heard one\nheard two\nover\n"
    assert (
        "cannot attach a container in a completed pod" in site.run((version, way), "attach", "talker").stderr.decode()
    )
    site.cluster.kubectl("delete", "pod", "talker")
    talker = next(each for each in (PODS % {"echo": json.dumps(ECHO)}).split("---") if "talker" in each)
    site.cluster.kubectl("apply", "-f", "-", stdin=talker)
    site.cluster.kubectl("wait", "--for=condition=Ready", "pod/talker", "--timeout=60s")


@pytest.mark.parametrize(("version", "way"), SLOWLY)
def test_attach_to_a_terminal(site: Site, version: str, way: str) -> None:
    with terminal(site, (version, way), "attach", "-it", "console") as (screen, _):
        os.write(screen, b"hello\n")
        expect(screen, b"heard hello\r\n")
    assert "heard hello" in site.cluster.kubectl("logs", "console")


@pytest.mark.parametrize(("version", "way"), SLOWLY)
def test_run_with_a_terminal(site: Site, version: str, way: str) -> None:
    """A pod for one conversation: made, attached to as soon as it runs, and gone after it."""
    name = f"once-{version.replace('.', '-')}-{way}"
    place = f"--overrides={json.dumps({'spec': {'nodeName': 'n1'}})}"
    words = ("run", name, "-it", "--rm", "--restart=Never", "--image=busybox", place, "--", "sh")
    with terminal(site, (version, way), *words) as (shell, process):
        os.write(shell, b"echo he''re; exit 6\n")
        expect(shell, b"here\r\n")
        expect(shell, b"deleted")
        assert process.wait(DEADLINE_SECONDS) == 6
    assert name not in site.cluster.kubectl("get", "pods", "-o", "name")


@pytest.mark.parametrize(("version", "way"), NEWEST)
def test_debug(site: Site, version: str, way: str) -> None:
    """Nobody runs an ephemeral container, and it is said by whoever had to."""
    done = site.run((version, way), "debug", "work", "-c", f"dbg-{way}", "--image=busybox", "--", "true")
    if isinstance(site.cluster, Joined):
        site.cluster.kubectl(
            "wait", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=128", "pod/work"
        )
        assert (
            "runs no ephemeral containers"
            in site.run((version, way), "logs", "work", "-c", f"dbg-{way}").stderr.decode()
        )
        assert "runs no ephemeral containers" in site.cluster.kubectl("get", "events")
    else:
        assert (done.returncode, b"debug is not supported by the embedded cluster" in done.stderr) == (1, True), (
            done.stderr
        )


def test_python_client(site: Site) -> None:
    """The official client's `stream` and `portforward`."""
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(f"{site.cluster.directory}/kubeconfig", client_configuration=configuration)
    core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))
    flags: dict[str, Any] = {"container": "main", "stdin": True, "stdout": True, "stderr": True, "tty": False}
    command = ["sh", "-c", "read word; echo $word; echo wrong >&2; exit 5"]
    talk = kubernetes.stream.stream(
        core.connect_get_namespaced_pod_exec, "work", "default", command=command, _preload_content=False, **flags
    )
    talk.write_stdin("word\n")
    talk.run_forever(timeout=DEADLINE_SECONDS)
    assert (talk.read_stdout(), talk.read_stderr(), talk.returncode) == ("word\n", "wrong\n", 5)
    talk.close()
    whole = kubernetes.stream.stream(
        core.connect_get_namespaced_pod_exec, "work", "default", container="main", command=["echo", "all"], stdout=True, stderr=False,
        stdin=False, tty=False,
    )  # fmt: skip
    assert whole == "all\n"
    port = int(site.ports[0])
    forward = kubernetes.stream.portforward(
        core.connect_get_namespaced_pod_portforward, "work", "default", ports=str(port)
    )
    connection = forward.socket(port)
    connection.sendall(b"word")
    seen = b""
    while len(seen) < 4:
        seen += connection.recv(4 - len(seen))
    assert seen == b"WORD"
    connection.close()


def test_on_an_image(site: Site) -> None:
    """In the container's own root, process and terminal namespaces, and as its user."""
    if not (site.cluster.directory / "images").is_dir() or not images_possible():
        pytest.skip("no images on this machine: they take root, an overlay file system and a static busybox")
    container = {"image": "tiny:1", "args": ["exec sleep 1000"], "securityContext": {"runAsUser": 1000}}
    site.cluster.apply("boxed", [], container={**container, "command": None}, terminationGracePeriodSeconds=0)
    site.cluster.await_phase("boxed", "Running")
    client = (VERSIONS[-1], "websocket")
    done = site.run(client, "exec", "boxed", "--", "sh", "-c", "id -u; cat /proc/1/comm; hostname")
    assert done.stdout.split() == [b"1000", b"sleep", b"boxed"], done.stderr
    looks = [
        "busybox cat /proc/$id/cgroup",
        "busybox grep ^Cap /proc/$id/status",
        "busybox grep ^NoNewPrivs /proc/$id/status",
        "for each in mnt pid ipc uts net user; do busybox readlink /proc/$id/ns/$each; done",
        "for each in root cwd; do busybox readlink /proc/$id/$each; done",
    ]
    for look in looks:  # of the main process, and of a command beside it
        both = (f"id={each}; {look}" for each in ("1", "$$"))
        first, beside = (site.run(client, "exec", "boxed", "--", "sh", "-c", each) for each in both)
        assert first.stdout and first.stdout == beside.stdout, (look, first, beside)
    with terminal(site, client, "exec", "-it", "boxed", "--", "sh") as (shell, process):
        os.write(shell, b"tty; echo re''ady\n")
        expect(shell, b"/dev/pts/0\r\n")
        os.write(shell, b"sleep 76543\n")
        until(lambda: site.left("sleep 76543"), "it runs")
        os.write(shell, b"\x03exit 4\n")
        assert process.wait(DEADLINE_SECONDS) == 4
    site.cluster.kubectl("delete", "pod", "boxed")


def test_container_ends(site: Site) -> None:
    """What was begun in a container ends with it."""
    site.cluster.apply("short", ["sleep", "1000"], terminationGracePeriodSeconds=0)
    site.cluster.await_phase("short", "Running")
    process = subprocess.Popen(
        site.command(VERSIONS[-1], "exec", "short", "--", "sleep", "87654"), stderr=subprocess.PIPE
    )
    until(lambda: site.left("sleep 87654"), "it runs")
    site.cluster.kubectl("delete", "pod", "short")
    assert process.wait(DEADLINE_SECONDS) == 137
    process.communicate()
    assert not site.left("sleep 87654")
