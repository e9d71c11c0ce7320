"""The dashboard of deploy/monitoring over a real Prometheus that scrapes a running cluster under load."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import ROOT, RunningCluster, StartCluster, until
from tests.e2e.prometheus import Prometheus, running_prometheus
from tests.e2e.scheduling.manifests import Manifest, listed

MONITORING = ROOT / "deploy" / "monitoring"
BOARD = json.loads((MONITORING / "training-job-scheduler.json").read_text())
PANELS = {panel["title"]: panel for panel in BOARD["panels"]}
STATUSES = next(each["query"].split(",") for each in BOARD["templating"]["list"] if each["name"] == "status")
_DEFINITIONS = "deploy/crds/optional/sublet"
_LOAD_SECONDS = 90.0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def loaded(start_cluster: StartCluster) -> RunningCluster:
    """Two nodes of eight GPUs, and two teams of which each has one of them."""
    gpus = ("--resource", "nvidia.com/gpu=8")
    cluster = start_cluster(options=["--no-process-node", "--simulated-nodes", "2", *gpus])
    cluster.kubectl("apply", "-k", _DEFINITIONS)
    cluster.apply(listed(*(_queue(name) for name in ("production", "research"))))
    known = ("explain", "queue", "production")
    assert until(lambda: "nvidia.com/gpu" in cluster.sublet(*known).stdout), cluster.sublet(*known)
    return cluster


def _queue(name: str) -> Manifest:
    quota = {"soft": {"gpu": 8}}
    metadata = {"apiVersion": "sublet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}}
    return {**metadata, "spec": {"quota": quota}}


def _job(name: str, queue: str, pods: int) -> Manifest:
    """A Job whose pods take a node's GPUs each, until they are deleted."""
    main = {"name": "main", "image": "any", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    template = {
        "metadata": {"labels": {"sublet.dev/queue": queue}},
        "spec": {
            "schedulerName": "koord-scheduler",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [main],
        },
    }
    spec = {"completions": pods, "parallelism": pods, "backoffLimit": 100, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _training(name: str, code: int) -> Manifest:
    """A TrainingJob of one pod that needs no GPU and ends at once."""
    annotations = {"sublet.dev/simulated-run-seconds": "1", "sublet.dev/simulated-exit-code": str(code)}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "any"}]}
    return {
        "apiVersion": "sublet.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {
            "jobType": "PyTorchJob",
            "schedulingConfig": {"queue": "research"},
            "maxRetry": 0,
            "resources": {"minReplicas": 1, "replicaResources": {"cpu": "1"}},
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
        },
    }


@pytest.fixture(scope="module")
def prometheus(loaded: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """By the scrape configuration of deploy/monitoring, but that addresses are given and it scrapes each second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("needs Prometheus: Debian package prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(_configuration(loaded))
    with running_prometheus(program, folder / "prometheus.yml", folder) as server:
        yield server


def _configuration(cluster: RunningCluster) -> str:
    """What is scraped on one machine is on loopback, in plain text and for everybody."""
    document = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    (job,) = [each for each in document["scrape_configs"] if each["job_name"] == "sublet-scheduler"]
    for key in ("scheme", "authorization", "tls_config", "kubernetes_sd_configs", "relabel_configs"):
        del job[key]
    job["static_configs"] = [{"targets": [cluster.endpoints["scheduler_http"]]}]
    return yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]})


@pytest.fixture(scope="module")
def under_load(loaded: RunningCluster, prometheus: Prometheus) -> Prometheus:
    """Research borrows production's node and has more waiting; production takes its own back, twice; jobs end."""
    loaded.apply(listed(_job("sweep", "research", 4)))
    preemptions = 'sum(training_job_preemptions_total{victim_queue="research"})'
    for round_ in (1, 2):
        loaded.apply(listed(_training(f"good-{round_}", 0), _training(f"bad-{round_}", 1)))
        assert until(lambda: _runs(loaded, "sweep") == 2, _LOAD_SECONDS), "research does not borrow"
        loaded.apply(listed(_job("release", "production", 1)))
        assert until(lambda: _runs(loaded, "release") == 1, _LOAD_SECONDS), "production does not get its own back"
        assert until(lambda least=round_: _value(prometheus, preemptions) >= least), "nothing is preempted"
        for status in STATUSES:
            ended = f'sum(training_job_completion_seconds_count{{status="{status}"}})'
            assert until(lambda least=round_, asked=ended: _value(prometheus, asked) >= least, 60), f"nothing {status}"
        loaded.kubectl("delete", "job", "release")
    return prometheus


def _value(server: Prometheus, expression: str) -> float:
    return next((value for _, value in server.series(expression)), 0.0)


def _runs(cluster: RunningCluster, job: str) -> int:
    told = ("get", "pods", "-l", f"job-name={job}", "--field-selector=status.phase=Running", "-o", "name")
    return len(cluster.kubectl(*told).split())


EXPECTED: dict[str, tuple[set[str], bool]] = {
    "Queue Length by Priority": ({"queue", "priority"}, True),
    "Scheduling Latency (P99)": (set(), True),
    "Resource Utilization": ({"queue", "resource_type"}, True),
    "Fair Share Deviation": ({"queue"}, False),
    "Preemption Events": ({"victim_queue"}, True),
    "Job Completion Time Distribution": ({"le", "status"}, True),
}
"""The labels that a panel's legend needs, and whether some number of it is above 0 under this load."""


@pytest.mark.parametrize("title", PANELS)
def test_every_panel_has_data(under_load: Prometheus, title: str) -> None:
    """Its query is one that Prometheus takes, answers with numbers, and names each series as the legend does."""
    labels, above = EXPECTED[title]
    for expression in _expressions(PANELS[title]):
        found = until(lambda asked=expression: _numbers(under_load.series(asked), above=above))
        assert found, (expression, under_load.series(expression))
        assert all(labels <= each.keys() for each, _ in found), found


def _numbers(found: list[tuple[dict[str, str], float]], *, above: bool) -> list[tuple[dict[str, str], float]]:
    """Those that are numbers, as long as any is above 0 where one has to be."""
    known = [(labels, value) for labels, value in found if not math.isnan(value)]
    return known if not above or any(value > 0 for _, value in known) else []


def _expressions(panel: dict[str, Any]) -> list[str]:
    """Of all targets, for each value that the variable may have."""
    told = [target["expr"] for target in panel["targets"]]
    return sorted({expression.replace("$status", status) for expression in told for status in STATUSES})
