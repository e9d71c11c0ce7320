"""The whole system as a person runs it: `sublet up` as a process of its own, real kubectl as the client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
CGROUPS = Path("/sys/fs/cgroup")
START_BOUND_SECONDS = 100.0
# Whatever else this machine does, there is room: Koordinator allows a reclaim threshold above 100.
ALWAYS_ROOM = "colocation:\n  cpu_reclaim_threshold_pct: 400\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks into the kernel's own cgroups needs root; the rest takes the kernel that `sublet up` takes."""
    here = str(Path(__file__).parent)
    able = os.geteuid() == 0 and os.access(CGROUPS / "cpu" / "cgroup.procs", os.W_OK)
    anywhere = {
        "test_up.py",
        "test_up_choices.py",
        "test_demo.py",
        "test_asking.py",
        "test_guides.py",
        "test_monitoring.py",
        "test_reading.py",
    }
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.e2e)
            if not able and item.path.name not in anywhere and item.path.parent.name != "scheduling":
                item.add_marker(pytest.mark.skip(reason="needs root and writable cgroup v1 controllers"))


EMBEDDED_ALONE = ("--state-dir", "--audit-log", "--listen")


def joined(config: pytest.Config) -> list[str]:
    """What `sublet up` is told besides where the tests are to run on another API server (--kubeconfig)."""
    file = config.getoption("--kubeconfig")
    return ["--join", str(Path(file).absolute())] if file else []


def until(condition: Callable[[], Any], bound_seconds: float = 60.0, every_seconds: float = 0.1) -> Any:
    """What `condition` answers once it is true, or its last answer when the bound has passed."""
    deadline = time.monotonic() + bound_seconds
    while not (answer := condition()) and time.monotonic() < deadline:
        time.sleep(every_seconds)
    return answer


class RunningCluster:
    """A `sublet up` process; `endpoints` is its endpoints.json as it is now."""

    def __init__(
        self, directory: Path, agent_settings: str = "", agent_journal: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self.journal = agent_journal
        chosen = [*options, *(["--agent-journal", str(agent_journal)] if agent_journal else [])]
        if agent_settings:
            (directory / "agent.yaml").write_text(agent_settings)
            chosen += ["--agent-settings", str(directory / "agent.yaml")]
        self.output = directory / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli", "up", "--dir", str(directory / "up"), *chosen],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=directory,
            )

    def wait_ready(self) -> None:
        """Return once `up` says so. Fails the test with its output where it does not."""
        ready = until(
            lambda: "ready after" in self.output.read_text() or self.process.poll() is not None, START_BOUND_SECONDS
        )
        assert ready and self.process.poll() is None, self.output.read_text()

    @property
    def endpoints(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "up" / "endpoints.json").read_text())
        return found

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        """stdout of kubectl."""
        return self._kubectl(*arguments, check=check).stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """kubectl with whatever it says, a refusal, too."""
        return self._kubectl(*arguments, check=False)

    def apply(self, manifest: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`kubectl apply` of a text."""
        return self._kubectl("apply", "-f", "-", text=manifest, check=check)

    def posted(self, path: str, body: str) -> subprocess.CompletedProcess[str]:
        """`kubectl create --raw`."""
        return self._kubectl("create", "--raw", path, "-f", "-", text=body, check=False)

    def command(self, *arguments: str) -> list[str]:
        """Of kubectl, with a discovery cache of its own, since another cluster's would be believed."""
        kubectl = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        if kubectl is None:
            pytest.skip("needs kubectl: make test installs one")
        kubeconfig, cache = self.endpoints["kubeconfig"], str(self.directory / "cache")
        return [kubectl, "--kubeconfig", kubeconfig, "--cache-dir", cache, *arguments]

    def _kubectl(self, *arguments: str, check: bool, text: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, input=text, timeout=60, cwd=ROOT
        )
        assert done.returncode == 0 or not check, f"kubectl {arguments}: {done.stderr}{done.stdout}"
        return done

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """While the block runs documents are stored as they are, as where admission does not answer."""
        webhooks = ("validatingwebhookconfiguration", "sublet-admission")
        kept = json.loads(self.kubectl("get", *webhooks, "-o", "json"))
        self.kubectl("delete", *webhooks)
        try:
            yield
        finally:
            kept["metadata"] = {key: kept["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
            self._kubectl("create", "-f", "-", check=True, text=json.dumps(kept))

    def sublet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A `sublet` command about this cluster."""
        command = [sys.executable, "-m", "cli", *arguments, "--dir", str(self.directory / "up")]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=self.directory)

    def cgroups(self) -> list[Path]:
        """Its cgroups in every controller, while endpoints are known."""
        return self.cgroups_of(self.endpoints["id"])

    def cgroups_of(self, id_: str) -> list[Path]:
        """Of the cluster with this id that runs or ran here, on the real kernel or on a simulated one."""
        return cgroups_named(f"sublet-{id_}", self.directory / "up")

    def stop(self) -> int:
        """SIGTERM, as a service manager would; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def cgroups_named(name: str, directory: Path) -> list[Path]:
    """Also in the simulated kernel of a run directory."""
    return [*CGROUPS.glob(name), *CGROUPS.glob(f"*/{name}"), *directory.glob(f"kernel/*/{name}")]


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


StartCluster = Callable[..., RunningCluster]


@contextmanager
def starting(elsewhere: Sequence[str], running: list[RunningCluster]) -> Iterator[StartCluster]:
    """Starts clusters, which end with the block; another API server holds one of all that are `running` at a time."""
    started: list[RunningCluster] = []

    def start(
        agent_settings: str = "",
        directory: Path | None = None,
        agent_journal: Path | None = None,
        options: Sequence[str] = (),
    ) -> RunningCluster:
        # Not pytest's own directory: a unix socket's path holds 107 bytes.
        folder = directory or Path(tempfile.mkdtemp(prefix="sublet-e2e-"))
        if elsewhere and set(EMBEDDED_ALONE) & set(options):
            pytest.skip("is about the embedded API server")
        if elsewhere and any(each.process.poll() is None for each in running):
            pytest.skip("another cluster of these tests runs on this API server: give this test alone")
        cluster = RunningCluster(folder, agent_settings, agent_journal, [*options, *elsewhere])
        started.append(cluster)
        running.append(cluster)
        cluster.wait_ready()
        return cluster

    yield start
    for cluster in started:
        cluster.stop()
        shutil.rmtree(cluster.directory, ignore_errors=True)


@pytest.fixture(scope="session")
def running() -> list[RunningCluster]:
    """Every cluster that these tests started."""
    return []


@pytest.fixture(scope="module")
def start_cluster(request: pytest.FixtureRequest, running: list[RunningCluster]) -> Iterator[StartCluster]:
    """Starts clusters of a module's own."""
    with starting(joined(request.config), running) as start:
        yield start


@pytest.fixture(scope="session")
def start_shared_cluster(request: pytest.FixtureRequest, running: list[RunningCluster]) -> Iterator[StartCluster]:
    """Starts clusters that modules share."""
    with starting(joined(request.config), running) as start:
        yield start


@pytest.fixture(scope="session")
def cluster(start_shared_cluster: StartCluster) -> RunningCluster:
    """The cluster that tests share; each leaves it as it found it."""
    return start_shared_cluster(agent_settings=ALWAYS_ROOM)
