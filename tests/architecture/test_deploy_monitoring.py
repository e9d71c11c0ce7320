"""deploy/monitoring fits the programs that deploy/ installs, and the dashboard is one that Grafana imports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.tests.apiserver.conftest import Api
from model.metrics import SCHEDULER, MetricType
from tests.architecture.test_deploy import DEPLOY, PROGRAMS, Object, found, refused, rendered, workload

MONITORING = DEPLOY / "monitoring"
BOARD = json.loads((MONITORING / "training-job-scheduler.json").read_text())
PANELS: dict[str, Object] = {panel["title"]: panel for panel in BOARD["panels"]}
SCRAPED = {
    each["job_name"]: each for each in yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
}
TYPES = {
    "Queue Length by Priority": "timeseries",
    "Scheduling Latency (P99)": "gauge",
    "Resource Utilization": "status-history",
    "Fair Share Deviation": "bargauge",
    "Preemption Events": "timeseries",
    "Job Completion Time Distribution": "heatmap",
}
_FAMILY = re.compile(r"training_[a-z_]+")


def monitor(program: str) -> Object:
    return found("ServiceMonitor", program, "monitoring/operator")


def test_the_board() -> None:
    """Six panels by name and type, none of which covers another; what an import asks for is there, and no id of another
    Grafana's.
    """
    assert BOARD["title"] == "Training Job Scheduler Dashboard" and BOARD["schemaVersion"] >= 36
    assert {title: panel["type"] for title, panel in PANELS.items()} == TYPES
    assert "id" not in BOARD and len({panel["id"] for panel in BOARD["panels"]}) == len(TYPES)
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def test_its_data_source_is_a_variable() -> None:
    """Whoever imports it chooses a Prometheus of theirs; no query names another."""
    variables = {each["name"]: each for each in BOARD["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    told = [each["datasource"] for panel in PANELS.values() for each in (panel, *panel["targets"])]
    assert all(each == {"type": "prometheus", "uid": "${datasource}"} for each in told)
    asked = {
        name
        for panel in PANELS.values()
        for target in panel["targets"]
        for name in re.findall(r"\$(\w+)", target["expr"])
    }
    assert asked == variables.keys() - {"datasource"}


@pytest.mark.parametrize("title", PANELS)
def test_a_panel_asks_for_rows_of_the_table(title: str) -> None:
    """By labels that they have; buckets of histograms, rates of counters and of nothing else."""
    for target in PANELS[title]["targets"]:
        (name,) = _FAMILY.findall(target["expr"])
        row = SCHEDULER.by_name[name.removesuffix("_bucket")]
        assert name.endswith("_bucket") == (row.type is MetricType.HISTOGRAM)
        assert ("rate(" in target["expr"]) == (row.type is not MetricType.GAUGE)
        grouped = {each.strip() for by in re.findall(r"by \(([^)]*)\)", target["expr"]) for each in by.split(",")}
        assert grouped | set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))) <= {*row.labels, "le"}


def test_the_dashboards_are_in_a_config_map() -> None:
    """Byte for byte, with the label that Grafana's sidecar looks for."""
    made = found("ConfigMap", "sublet-dashboards", "monitoring")
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text) for name, text in made["data"].items()} == {"training-job-scheduler.json": BOARD}


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_ways_of_scraping_reach_the_program(program: str) -> None:
    """Its port, over TLS by the name in its certificate, with the account's token."""
    labels = workload(program)["spec"]["template"]["metadata"]["labels"]
    ports = [
        port["name"]
        for each in workload(program)["spec"]["template"]["spec"]["containers"]
        for port in each.get("ports", ())
    ]
    job = SCRAPED[program]
    (kept,) = [each["regex"] for each in job["relabel_configs"] if each.get("action") == "keep"]
    assert kept == f"{labels['app.kubernetes.io/name']};http" and ports.count("http") == 1
    assert (job["scheme"], job["tls_config"]["server_name"]) == ("https", f"{program}.sublet-system.svc")
    assert job["authorization"]["credentials_file"].endswith("/serviceaccount/token")
    spec = monitor(program)["spec"]
    (service,) = [each for each in rendered(".") if each["kind"] == "Service" and _selects(spec["selector"], each)]
    (endpoint,) = spec["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert service["spec"]["selector"].items() <= labels.items()
    assert endpoint["scheme"] == "https" and endpoint["tlsConfig"]["serverName"] == job["tls_config"]["server_name"]
    assert endpoint["tlsConfig"]["ca"]["configMap"] == {"name": "sublet-ca", "key": "ca.crt"}
    shown = endpoint["authorization"]["credentials"]
    secret = found("Secret", shown["name"], "monitoring")
    assert (secret["type"], shown["key"]) == ("kubernetes.io/service-account-token", "token")
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == "sublet-prometheus"


def _selects(selector: Object, each: Object) -> bool:
    return bool(selector["matchLabels"].items() <= each["metadata"].get("labels", {}).items())


def test_the_api_server_takes_everything() -> None:
    """But the ServiceMonitors, whose definition is the operator's."""
    api = Api()
    assert [line for folder in ("namespace", "monitoring") for line in refused(api, folder)] == []


def test_the_account_may_read_and_nothing_else() -> None:
    """Its token is shown on every node."""
    granted = {
        (verb, path)
        for each in rendered("monitoring")
        for rule in each.get("rules", ())
        for verb in rule["verbs"]
        for path in (*rule.get("nonResourceURLs", ()), *rule.get("resources", ()))
    }
    assert granted == {("get", "/metrics"), ("get", "pods"), ("list", "pods"), ("watch", "pods")}
    (role,) = [each for each in rendered("monitoring") if each["kind"] == "ClusterRole"]
    assert all("resources" not in rule for rule in role["rules"])


def test_prometheus_reads_the_configuration(tmp_path: Path) -> None:
    """But for the discovery of pods, which Debian's build leaves out."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool: Debian package prometheus")
    document: dict[str, Any] = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    for job in document["scrape_configs"]:
        del job["kubernetes_sd_configs"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(document))
    asked = [promtool, "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
