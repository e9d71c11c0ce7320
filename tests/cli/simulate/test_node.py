"""`sublet simulate node`: objects in, Koordinator's numbers out, and one line for whatever is wrong with the objects."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from cli.simulate.node import unix_seconds

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "simulate.md").read_text()
EXAMPLE = ["simulate", "node", "-f", "examples/simulate", "--now", "2026-01-02T03:04:30Z"]
MEASURED = "2026-01-02T03:04:00Z"
NOW = "2026-01-02T03:04:30Z"
CPU, MEMORY = BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MID_CPU, MID_MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
Object = dict[str, Any]


def node(name: str = "n1", cpu: Any = "10", memory: Any = 1000, **metadata: Any) -> Object:
    """Ten CPUs, a thousand bytes: percentages are easy to see."""
    amounts = {"cpu": cpu, "memory": memory}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}, "status": status}


def pod(name: str = "web", on: str = "n1", cpu: Any = "2", memory: Any = 100, qos: str = "LS", **spec: Any) -> Object:
    container = {"name": "a", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"nodeName": on, "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


def usage(cpu: Any, memory: Any) -> Object:
    return {"resources": {"cpu": cpu, "memory": memory}}


def metric(name: str = "n1", pods: Mapping[str, Object] | None = None, **status: Any) -> Object:
    """The node uses 3 CPUs and 300 bytes, 1 and 100 of them outside pods, one web pod 1500m and 80."""
    rows = {"web": usage("1500m", 80)} if pods is None else pods
    told = [{"namespace": "shop", "name": pod, "podUsage": use, "priority": "koord-prod"} for pod, use in rows.items()]
    measured = {"nodeUsage": usage(3, 300), "systemUsage": usage(1, 100)}
    return {
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {"updateTime": MEASURED, "nodeMetric": measured, "podsMetric": told, **status},
    }


def settings(namespace: str = "koordinator-system", name: str = "slo-controller-config", **fields: Any) -> Object:
    data = {"colocation-config": json.dumps({"enable": True, **fields})}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def slo(name: str = "n1", **threshold: Any) -> Object:
    spec = {"resourceUsedThresholdWithBE": threshold}
    return {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": name}, "spec": spec}


def zones(*cpus: str) -> Object:
    def rows(cpu: str) -> list[Object]:
        return [{"name": n, "capacity": a, "allocatable": a} for n, a in (("cpu", cpu), ("memory", "500"))]

    told = [{"name": f"node-{i}", "type": "Node", "resources": rows(cpu)} for i, cpu in enumerate(cpus)]
    version = "topology.node.k8s.io/v1alpha1"
    return {"apiVersion": version, "kind": "NodeResourceTopology", "metadata": {"name": "n1"}, "zones": told}


def untyped(item: Object) -> Object:
    """As an API server lists it."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Simulates the objects as one file of YAML documents; returns the JSON, of a single Node without its list."""

    def ran(*documents: Object, now: str = NOW) -> Any:
        file = tmp_path / "all.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        assert main(["simulate", "node", "-f", str(file), "--now", now, "-o", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        return found[0] if len(found) == 1 else found

    return ran


def terms(amount: Object) -> dict[str, int]:
    return {term["name"]: term["value"] for term in amount["terms"]}


def values(found: Object) -> list[int]:
    return [amount["value"] for amount in found["resources"].values()]


def test_the_json_has_the_documented_shape(run: Run) -> None:
    """Every key, and no other; worked by hand: 10000 - 4000 - 1000 - 1500 milli-CPU, 1000 - 350 - 100 - 80 bytes."""
    found = run(node(), pod(), metric())
    assert found.pop("limits") and found.pop("evictions") == []
    zero = [{"name": "prod reclaimable", "value": 0}, {"name": "unallocated share", "value": 0}]
    assert found == {
        "node": "n1",
        "degraded": None,
        "resources": {
            CPU: {
                "value": 3500,
                "unit": "milli",
                "terms": [
                    {"name": "capacity", "value": 10000},
                    {"name": "safety margin", "value": -4000},
                    {"name": "system used", "value": -1000},
                    {"name": "high-priority used", "value": -1500},
                ],
                "policy": "usage",
            },
            MEMORY: {
                "value": 470,
                "unit": "bytes",
                "terms": [
                    {"name": "capacity", "value": 1000},
                    {"name": "safety margin", "value": -350},
                    {"name": "system used", "value": -100},
                    {"name": "high-priority used", "value": -80},
                ],
                "policy": "usage",
            },
            MID_CPU: {"value": 0, "unit": "milli", "terms": zero, "policy": "prediction"},
            MID_MEMORY: {"value": 0, "unit": "bytes", "terms": zero, "policy": "prediction"},
        },
        "zones": [],
        "prepared": {CPU: 3500, MEMORY: 470, MID_CPU: 0, MID_MEMORY: 0},
    }


@pytest.mark.parametrize(
    ("case", "objects", "expected"),
    [
        ("a pod that is not measured keeps its request", [node(), pod(), metric(pods={})], [3000, 450]),
        # 5000 - 3000, 550 - 200: as a whole it asks for more than its container
        ("a pod that asks as a whole", [node(), pod(resources={"requests": {"cpu": "3", "memory": 200}}), metric(pods={})], [2000, 350]),
        # 5000 - 1500, 550 - 100: its memory is not measured
        ("a pod of which only CPU is measured", [node(), pod(), metric(pods={"web": {"resources": {"cpu": "1500m"}}})], [3500, 450]),
        ("pods of another node keep nothing here", [node(), pod(on="n2"), metric(pods={})], [5000, 550]),
        ("a pod on no node keeps nothing", [node(), pod(on=""), metric(pods={})], [5000, 550]),
        ("batch pods keep nothing", [node(), pod(qos="BE", priority=5000, containers=[{"name": "a"}]), metric(pods={})], [5000, 550]),
        ("batch pods in name alone keep what they asked for", [node(), pod(qos="BE", priority=5000), metric(pods={})], [3000, 450]),
        ("a finished pod keeps nothing", [node(), pod() | {"status": {"phase": "Succeeded"}}, metric(pods={})], [5000, 550]),
        ("a NodeSLO changes nothing", [node(), pod(), metric(), slo(cpuSuppressThresholdPercent=1)], [3500, 470]),
        ("another node's NodeSLO and metric neither", [node(), pod(), metric(), slo("n2"), metric("n2")], [3500, 470]),
        # 10000 - 2000 - 1000 - max(1500, 2000); 1000 - 350 - 100 - 100
        ("the ConfigMap's thresholds and policy", [node(), pod(), metric(), settings(cpuReclaimThresholdPercent=80, cpuCalculatePolicy="maxUsageRequest", memoryCalculatePolicy="maxUsageRequest")], [5000, 450]),
        ("a ConfigMap of another name does not count", [node(), pod(), metric(), settings(name="other", enable=False)], [3500, 470]),
        ("the Node's label beats the ConfigMap", [node(labels={"node.koordinator.sh/cpu-reclaim-ratio": "0.9"}), pod(), metric(), settings(cpuReclaimThresholdPercent=80)], [6500, 470]),
        ("an object given twice counts as written last", [node(cpu="99"), node(), pod(), metric()], [3500, 470]),
        ("a Node without capacity", [{"kind": "Node", "metadata": {"name": "n1"}, "status": None}, metric()], [0, 0]),
    ],
)  # fmt: skip
def test_batch_by_case(case: str, objects: list[Object], expected: list[int], run: Run) -> None:
    """batch-cpu in milli-CPU and batch-memory in bytes; what is written is the same."""
    found = run(*objects)
    assert values(found)[:2] == expected and found["degraded"] is None
    assert list(found["prepared"].values()) == values(found)


@pytest.mark.parametrize(
    ("case", "objects", "reason"),
    [
        ("no NodeMetric", [node()], "NodeMetricsMissing"),
        ("a NodeMetric of another node", [node(), metric("n2")], "NodeMetricsMissing"),
        ("a NodeMetric without status", [node(), {"kind": "NodeMetric", "metadata": {"name": "n1"}}], "NodeMetricsMissing"),
        ("no node use in it", [node(), metric(nodeMetric={"systemUsage": usage(1, 1)})], "NodeMetricsMissing"),
        ("one from 15 min and a second ago", [node(), metric(updateTime="2026-01-02T02:49:29Z")], "NodeMetricsStale"),
        ("older than the ConfigMap's one minute", [node(), metric(updateTime="2026-01-02T03:03:29Z"), settings(degradeTimeMinutes=1)], "NodeMetricsStale"),
        ("a ConfigMap that does not speak of lending", [node(), metric(), settings() | {"data": {}}], "LendingDisabled"),
        ("the ConfigMap says off", [node(), metric(), settings(enable=False)], "LendingDisabled"),
        ("the Node's annotation says off", [node(annotations={"node.koordinator.sh/colocation-strategy": '{"enable":false}'}), metric()], "LendingDisabled"),
    ],
)  # fmt: skip
def test_a_degraded_node_lends_nothing(case: str, objects: list[Object], reason: str, run: Run) -> None:
    """All four are 0 without terms, and its keys are to be removed."""
    found = run(*objects, zones("5", "5"))
    assert found["degraded"] == reason
    assert all(a == {"value": 0, "unit": a["unit"], "terms": [], "policy": ""} for a in found["resources"].values())
    assert found["prepared"] == {}
    assert [zone["prepared"] for zone in found["zones"]] == [{}, {}]


def test_exactly_15_minutes_are_fresh(run: Run) -> None:
    """The limit itself still counts, to the second."""
    assert run(node(), metric(updateTime="2026-01-02T02:49:30Z"))["degraded"] is None


@pytest.mark.parametrize("cpu", ["1e30", "1e400"])
def test_amounts_nobody_has_are_no_crash(run: Run, cpu: str) -> None:
    """A typing error counts as the largest amount, 2^53, so that sums fit 64 bits; at most 60 % of it is lent."""
    amount = run(node(cpu=cpu), metric(pods={}))["resources"][CPU]
    assert sum(terms(amount).values()) == amount["value"] < 2**53
    assert terms(amount)["capacity"] == 2**53


def test_every_node_is_answered_in_order(run: Run) -> None:
    """One object a Node, each with its own pods and metric."""
    found = run(node("z", cpu="20"), node("a"), metric("a", pods={}), metric("z", pods={}), pod(on="a"))
    # 20000 - 8000 - 1000; 10000 - 4000 - 1000 - 2000 requested
    assert [(item["node"], values(item)[0]) for item in found] == [("z", 11000), ("a", 3000)]


def test_zones_split_system_use_and_pods_evenly(run: Run) -> None:
    """Zone 0: 6000 - 2400 - 500 - 750; zone 1: 4000 - 1600 - 500 - 750; memory 500 - 175 - 50 - 40 in both."""
    found = run(node(), pod(), metric(), zones("6", "4"))
    assert [zone["name"] for zone in found["zones"]] == ["node-0", "node-1"]
    assert [zone["prepared"] for zone in found["zones"]] == [{CPU: 2350, MEMORY: 235}, {CPU: 1150, MEMORY: 235}]
    assert terms(found["zones"][1]["resources"][CPU])["high-priority used"] == -750


def test_prepared_holds_what_is_written(run: Run) -> None:
    """3500 x 1.5 - 1000 given away; 470 - 70; mid as it is."""
    given = {"name": "yarn", "priority": "koord-batch", "resources": {CPU: "1000", MEMORY: "70"}}
    annotations = {
        "node.koordinator.sh/cpu-normalization-ratio": "1.50",
        "node.koordinator.sh/thirdPartyAllocations": json.dumps({"allocations": [given]}),
    }
    found = run(node(annotations=annotations), pod(), metric(prodReclaimableMetric={"resource": usage("700m", 90)}))
    assert found["prepared"] == {CPU: 4250, MEMORY: 400, MID_CPU: 700, MID_MEMORY: 90}
    assert values(found) == [3500, 470, 700, 90]


def test_with_a_config_map_the_nodes_own_ratio_does_not_count(run: Run) -> None:
    """It may be what is left of a key that was deleted: Koordinator writes 1.00 then."""
    ratio = {"node.koordinator.sh/cpu-normalization-ratio": "1.50"}
    assert run(node(annotations=ratio), pod(), metric())["prepared"][CPU] == 5250
    assert run(node(annotations=ratio), pod(), metric(), settings())["prepared"][CPU] == 3500


def test_a_pod_without_namespace_is_in_default(run: Run) -> None:
    """As kubectl would apply it; so its row in the NodeMetric is found."""
    lone = pod()
    del lone["metadata"]["namespace"]
    found = metric()
    found["status"]["podsMetric"][0]["namespace"] = "default"
    assert values(run(node(), lone, found))[0] == 3500


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("documents", yaml.safe_dump_all([node(), pod(), metric()])),
        ("documents with empty ones", "---\n# nothing\n---\n" + yaml.safe_dump_all([node(), pod(), metric()]) + "---\n"),
        ("a YAML List", yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [node(), pod(), metric()]})),
        ("a JSON List", json.dumps({"kind": "List", "items": [node(), pod(), metric()]}, indent="\t")),
        ("a List within a List", json.dumps({"kind": "List", "items": [{"kind": "List", "items": [node(), pod()]}, metric()]})),
        ("JSON documents", "\n".join(json.dumps(item) for item in (node(), pod(), metric()))),
        ("JSON without anything between", "".join(json.dumps(item) for item in (node(), pod(), metric()))),
        ("YAML documents in braces", "\n---\n".join(json.dumps(item) for item in (node(), pod(), metric()))),
        ("an API server's typed lists", json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [untyped(node())]}) + json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [untyped(pod())]}) + json.dumps(metric())),
        ("a time without quotes", yaml.safe_dump_all([node(), pod(), metric()]).replace(f"'{MEASURED}'", MEASURED)),
        ("Windows line ends", yaml.safe_dump_all([node(), pod(), metric()]).replace("\n", "\r\n")),
    ],
)  # fmt: skip
def test_every_form_kubectl_prints_or_takes(
    case: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From standard input, to the same answer."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["simulate", "node", "-f", "-", "--now", NOW, "-o", "json"]) == 0
    seen = capsys.readouterr()
    assert values(json.loads(seen.out)[0])[:2] == [3500, 470] and seen.err == ""


def test_files_and_folders_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder's manifests in the order of their names, whatever else is in it; the later file wins."""
    folder = tmp_path / "folder"
    (folder / "below.yaml").mkdir(parents=True)
    (folder / "a.yml").write_text(yaml.safe_dump(node(cpu="99")))
    (folder / "b.json").write_text(json.dumps(node()))
    (folder / "c.yaml").write_text(yaml.safe_dump(pod()))
    (folder / "README.md").write_text("no manifest: {")
    (tmp_path / "metric").write_text(yaml.safe_dump(metric()))
    files = ["-f", str(folder), "-f", str(tmp_path / "metric")]
    assert main(["simulate", "node", *files, "--now", NOW, "-o", "json"]) == 0
    assert values(json.loads(capsys.readouterr().out)[0])[0] == 3500


def test_what_does_not_count_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line a reason on standard error, none for the JSON's reader; a foreign Node is no Node of the cluster's."""
    others = [{"kind": "Service"}, {"kind": "Deployment"}, {"kind": "Service"}, {"kind": "AllowList"}]
    foreign = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n1"}}
    (tmp_path / "f").write_text(yaml.safe_dump_all([node(), *others, foreign, pod(on=""), pod("x", on="n9")]))
    assert main(["simulate", "node", "-f", str(tmp_path / "f"), "-o", "json"]) == 0
    seen = capsys.readouterr()
    assert len(json.loads(seen.out)) == 1
    assert seen.err.splitlines() == [
        "note: objects of other kinds are not looked at: AllowList, Deployment, Node of longhorn.io, Service",
        "note: Pods without spec.nodeName of a given Node, which do not count: 2",
    ]


BAD_ANNOTATION = {"node.koordinator.sh/reservation": '{"resources":{"cpu":"lots"}}'}


@pytest.mark.parametrize(
    ("case", "text", "expected"),
    [
        ("no text at all", "", "{file}: no Node is given"),
        ("no Node", yaml.safe_dump(pod()), "{file}: no Node is given"),
        ("broken YAML", "a: [\n", "{file}: is neither YAML nor JSON: "),
        ("broken JSON", json.dumps(node())[:-1], "{file}: is neither YAML nor JSON: "),
        ("binary", "\0\1", "{file}: is neither YAML nor JSON: "),
        ("a tag whose content does not fit", "!!timestamp x", "{file}: is neither YAML nor JSON: "),
        ("a list that holds itself", "&a {kind: List, items: [*a]}", "{file}: is neither YAML nor JSON: an alias stands for a value that it is part of"),
        ("a sentence", "hello", "{file} document 1: is no Kubernetes object"),
        ("an object without a kind", "---\n---\nmetadata: {}\n", "{file} document 2: is no Kubernetes object"),
        ("a List's item without a kind", "kind: List\nitems: [{metadata: {name: x}}]", "{file} document 1 item 1: is no Kubernetes object"),
        ("a List that holds no list", "kind: NodeList\nitems: {a: b}", "{file} document 1: items: is no list"),
        ("no name", "kind: Node", "{file} document 1: Node: has no metadata.name"),
        ("metadata of a wrong kind", "kind: Node\nmetadata: x", "{file} document 1: Node: has no metadata.name"),
        ("a field of a wrong kind", yaml.safe_dump_all([node(), pod(nodeName=7)]), "{file} document 2: Pod web: spec.nodeName: is 7 (expected a text"),
        ("a label that is no text", yaml.safe_dump(node(labels={"x": True})), "{file} document 1: Node n1: metadata.labels['x']: is True"),
        ("a quantity nobody can read", yaml.safe_dump(node(cpu="lots")), "{file} document 1: Node n1: status.capacity.cpu: 'lots' is not a quantity"),
        ("a negative amount", yaml.safe_dump(node(memory=-5)), "{file} document 1: Node n1: status.capacity.memory: -5 is negative"),
        ("a pod's request", yaml.safe_dump_all([node(), pod(cpu="x")]), "{file} document 2: Pod shop/web: container a.resources.requests.cpu: 'x'"),
        ("a NodeMetric's time", yaml.safe_dump_all([node(), metric(updateTime="noon")]), "{file} document 2: NodeMetric n1: status.updateTime: is 'noon'"),
        ("a Node's annotation", yaml.safe_dump(node(annotations=BAD_ANNOTATION)), "{file} document 1: Node n1: annotation node.koordinator.sh/reservation.resources.cpu: 'lots'"),
        ("a ConfigMap's field", yaml.safe_dump_all([node(), metric(), settings(cpuReclaimThresholdPercent="x")]), "{file} document 3: ConfigMap koordinator-system/slo-controller-config: colocation-config.cpuReclaimThresholdPercent: is 'x'"),
        ("a NodeSLO's field", yaml.safe_dump_all([node(), slo(cpuSuppressThresholdPercent=900)]), "{file} document 2: NodeSLO n1: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: is 900"),
        ("a zone's amount", yaml.safe_dump_all([node(), zones("x")]), "{file} document 2: NodeResourceTopology n1: zones[0].resources: allocatable.cpu: 'x'"),
        ("two clusters' settings", yaml.safe_dump_all([node(), settings(), settings("other")]), "are two settings for one cluster"),
    ],
)  # fmt: skip
def test_a_wrong_object_is_one_line(
    case: str, text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, document, object, field; exit code 2; nothing on standard output, also where a good Node came first."""
    file = tmp_path / "f.yaml"
    file.write_text(text)
    assert main(["simulate", "node", "-f", str(file), "--now", NOW]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.startswith("error: ") and seen.err.count("\n") == 1
    assert expected.format(file=file) in seen.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-f", "{tmp}/none"], "{tmp}/none: cannot be read: No such file or directory"),
        (["-f", "{tmp}"], "{tmp}: holds no .json, .yaml, .yml file"),
        ([], "Missing option"),
        (["-f", "x", "-o", "xml"], "'xml' is not one of"),
        (["-f", "x", "--now", "noon"], "--now noon: is no time"),
        (["-f", "x", "--now", "0001-01-01T00:00:00+01:00"], "is no time"),
        (["-f", "x", "--now", "nan"], "--now nan: is no time"),
        (["-f", "x", "--now", "1e300"], "--now 1e300: is no time"),
        (["-f", "x", "--now", "2026-01-02T03:04:05"], "has no time zone (add Z for UTC)"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for objects."""
    assert main(["simulate", "node", *(argument.format(tmp=tmp_path) for argument in arguments)]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and expected.format(tmp=tmp_path) in seen.err and seen.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045.0),
        ("2026-01-02T11:04:05.5+08:00", 1_767_323_045.5),
        ("1767323045", 1_767_323_045.0),
        ("0", 0.0),
    ],
)
def test_now_in_both_forms(text: str, seconds: float) -> None:
    """RFC 3339 with any offset, or Unix seconds."""
    assert unix_seconds(text) == seconds


def test_without_now_the_clock_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A NodeMetric of the past is stale, one that is dated far ahead is not."""
    file = tmp_path / "f"
    for year, expected in (("2001", "NodeMetricsStale"), ("9999", None)):
        file.write_text(yaml.safe_dump_all([node(), metric(updateTime=f"{year}-01-01T00:00:00Z")]))
        assert main(["simulate", "node", "-f", str(file), "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["degraded"] == expected


def table(tmp_path: Path, capsys: pytest.CaptureFixture[str], *documents: Object) -> str:
    (tmp_path / "f").write_text(yaml.safe_dump_all(documents))
    assert main(["simulate", "node", "-f", str(tmp_path / "f"), "--now", NOW]) == 0
    return capsys.readouterr().out


def test_the_table_names_both_of_two_policies_and_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words that CPU and memory share stand once; a term of one resource leaves the other's cell empty."""
    out = table(tmp_path, capsys, node(), pod(), metric(), settings(memoryCalculatePolicy="request"))
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "batch CPUs GiB policy usage / request" in lines
    assert "safety margin -4.000 -0.000 40 / 35 % of capacity" in lines
    assert "high-priority used -1.500 measured usage; pods: 1" in lines
    assert "kubernetes.io/batch-memory 550" in lines
    assert lines[0] == "node n1, at 2026-01-02T03:04:30Z, usage measured 30 s earlier"


def test_the_table_shows_preparation_only_where_it_changes_something(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A block of its own with the ratio; nothing of it on a plain node."""
    ratio = {"node.koordinator.sh/cpu-normalization-ratio": "1.50"}
    plain = table(tmp_path, capsys, node(), metric(pods={}))
    faster = table(tmp_path, capsys, node(annotations=ratio), metric(pods={}))
    assert "as written" not in plain
    assert "batch as written" in faster and "CPU normalization" in faster and "7500\n" in faster


def test_the_table_tells_what_running_batch_pods_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The agent leaves their requests standing (docs/adr/0004); the JSON's `prepared` does not hold them."""
    job = pod("job", qos="BE", cpu="0", memory=0, priority=5000)
    job["spec"]["containers"][0]["resources"]["requests"] = {CPU: "9000"}
    out = table(tmp_path, capsys, node(), metric(pods={}), job)
    assert "the agent keeps kubernetes.io/batch-cpu at 9000" in out and f"keeps {MEMORY}" not in out


@pytest.mark.parametrize(
    ("updated", "expected"),
    [
        ("2026-01-02T02:00:00Z", ("64 min earlier", "NodeMetricsStale", "(at most 15 min)", "resources are removed")),
        ("2025-12-25T03:04:30Z", ("8 d earlier",)),
        ("2026-01-02T03:05:00Z", ("30 s later", "written to the Node")),
        (None, ("usage not known", "NodeMetricsMissing", "resources are removed")),
    ],
)
def test_the_table_tells_the_age_of_the_facts(
    updated: str | None, expected: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a unit a person reads; and what follows of it."""
    out = table(tmp_path, capsys, node(), metric(updateTime=updated))
    assert all(text in out for text in expected), out


@pytest.mark.parametrize("example", ["simulate", "pressure"])
def test_the_documented_table_is_what_is_printed(
    example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/simulate.md holds the examples' output, letter by letter."""
    monkeypatch.chdir(ROOT)
    arguments = ["simulate", "node", "-f", f"examples/{example}", "--now", NOW]
    assert main(arguments) == 0
    command = "$ sublet " + " ".join(arguments)
    assert f"```console\n{command}\n{capsys.readouterr().out}```\n" in PAGE


def test_the_documented_json_is_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page may break lines elsewhere, and nothing else."""
    monkeypatch.chdir(ROOT)
    printed = []
    for example in ("simulate", "pressure"):
        assert main(["simulate", "node", "-f", f"examples/{example}", "--now", NOW, "-o", "json"]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    told = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert told == [printed[0], printed[1][0]["evictions"]]


EVERY_TERM = {
    "usage": [node(), pod(), pod("new"), metric(pods={"web": usage(1, 1), "gone": usage(1, 1)})],
    "best effort": [node(), {**pod(cpu="0", memory="0", qos="BE"), "status": {"phase": "Running", "qosClass": "BestEffort"}}, metric()],
    "request": [node(), pod(), metric(), settings(memoryCalculatePolicy="request")],
    "the larger": [node(), pod(), metric(), settings(cpuCalculatePolicy="maxUsageRequest")],
    "caps": [node(), metric(prodReclaimableMetric={"resource": usage(9, 900)}), settings(batchCPUThresholdPercent=1, batchMemoryThresholdPercent=1, midCPUThresholdPercent=1, midMemoryThresholdPercent=1)],
    "more than there is": [node(), metric(pods={}, nodeMetric={"nodeUsage": usage(0, 0), "systemUsage": usage(0, 0)}), settings(cpuReclaimThresholdPercent=200)],
    "less than nothing": [node(cpu="1"), metric()],
    "static": [node(), metric(), settings(midReclaimMode="static", midStaticCPUReservedPercent=5)],
}  # fmt: skip


@pytest.mark.parametrize("case", EVERY_TERM)
def test_terms_sum_to_the_value(case: str, run: Run) -> None:
    """Of all four resources, and none is below zero."""
    for amount in run(*EVERY_TERM[case])["resources"].values():
        assert sum(terms(amount).values()) == amount["value"] >= 0


def test_every_term_and_policy_is_documented(run: Run) -> None:
    """docs/simulate.md lists exactly the names that there are."""
    amounts = [amount for objects in EVERY_TERM.values() for amount in run(*objects)["resources"].values()]
    section = re.search(r"### Terms\n(.*?)\n\n[A-Z]", PAGE, re.DOTALL)
    assert section is not None
    cells = [line.split("|")[1] for line in section[1].splitlines() if line.startswith("| `")]
    assert {name for amount in amounts for name in terms(amount)} == {
        name for cell in cells for name in re.findall("`(.*?)`", cell)
    }
    assert {f"`{amount['policy']}`" for amount in amounts} <= set(re.findall("`.*?`", PAGE))


def test_it_starts_without_what_a_cluster_needs() -> None:
    """No client, no server, no chart is loaded to answer from files."""
    code = f"""
import sys
from cli.main import main
main({EXAMPLE})
print(sorted({{"kubernetes", "grpc", "aiohttp", "numpy", "matplotlib", "psutil"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
