"""The cluster the list is checked against (ours, or that of --kubeconfig), its clients, and a case for each test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import kubernetes
import pytest

pytest.register_assert_rewrite("embedded.tests.conformance.case", "embedded.tests.conformance.behaviours")

from embedded.tests.conformance.behaviour import Behaviour  # noqa: E402
from embedded.tests.conformance.case import Case, unique  # noqa: E402
from embedded.tests.conformance.clients import Client  # noqa: E402
from embedded.tests.conformance.kubectl import Kubectl, binaries  # noqa: E402
from embedded.tests.conformance.python_client import PythonClient  # noqa: E402
from embedded.tests.conformance.raw import RawClient  # noqa: E402
from embedded.tests.conformance.resources import NAMESPACES, SERVICE_ACCOUNTS  # noqa: E402


@dataclass
class Cluster:
    """A reachable API server and the clients made for it, each once."""

    kubeconfig: Path
    home: Path
    foreign: bool
    controlled: bool = True
    clients: dict[str, Client] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.configuration = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(self.kubeconfig), client_configuration=self.configuration)
        self.raw = RawClient(self.configuration)
        groups = self.raw.call("GET", "/apis")["groups"]
        self.groups = {group["name"] for group in groups}

    def client(self, name: str) -> Client:
        """`raw`, `python` or a version of kubectl."""
        if name not in self.clients:
            self.clients[name] = self._make(name)
        return self.clients[name]

    def _make(self, name: str) -> Client:
        if name == "raw":
            return self.raw
        if name == "python":
            return PythonClient(self.configuration)
        home = self.home / name
        home.mkdir()
        return Kubectl(binaries()[name], name, self.kubeconfig, home)

    def has(self, need: str) -> bool:
        """Whether this cluster serves a group, or runs controllers."""
        return need == "" or (self.controlled if need == "controllers" else need in self.groups)

    def prepare(self, case: Case) -> None:
        """Gives the case's namespace what pods there need.

        Controllers give every namespace a ServiceAccount, and pods are refused until it is there; a bare API
        server never makes one, which only the first case waits for.
        """
        if not self.foreign:
            return
        try:
            if self.controlled:
                case.eventually(lambda: case.exists(SERVICE_ACCOUNTS, "default"), "a ServiceAccount")
                return
        except AssertionError:
            self.controlled = False
        case.raw.create(SERVICE_ACCOUNTS, case.ns, SERVICE_ACCOUNTS.object("default"))


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("conformance")
    named = request.config.getoption("--kubeconfig")
    if named:
        yield Cluster(Path(named).resolve(), home, foreign=True)
        return
    from embedded.tests.apiserver.conftest import Live  # the check of another cluster needs none of our server

    live = Live(home)
    yield Cluster(live.kubeconfig, home, foreign=False)
    live.stop()
    assert "Traceback" not in (home / "log").read_text()


@pytest.fixture
def case(cluster: Cluster, behaviour: Behaviour, client: str) -> Iterator[Case]:
    """A case with a namespace of its own, both removed afterwards."""
    namespace = unique("list")
    cluster.raw.create(NAMESPACES, "", NAMESPACES.object(namespace))
    made = Case(cluster.raw, cluster.client(client), str(cluster.kubeconfig), cluster.foreign, namespace)
    made.defer(lambda: cluster.raw.delete(NAMESPACES, "", namespace))
    try:
        cluster.prepare(made)
        if not cluster.has(behaviour.needs):
            pytest.skip(f"this cluster has no {behaviour.needs}")
        yield made
    finally:
        made.close()
