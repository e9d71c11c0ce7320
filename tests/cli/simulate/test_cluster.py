"""`sublet simulate cluster`: objects in, placements, victims and reasons out; the decisions are in scheduler/cases."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.cli.simulate.clusters import Object, node, other, pod

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "simulate-cluster.md").read_text()
EXAMPLE = ["simulate", "cluster", "-f", "examples/simulate/cluster", "--now", "2026-01-02T03:04:30Z"]
QUEUES = ["simulate", "cluster", "-f", "examples/simulate/queues", "--now", "2026-01-02T03:04:30Z"]
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give objects, take the JSON."""

    def once(*objects: Object, options: tuple[str, ...] = ()) -> dict[str, Any]:
        file = tmp_path / "cluster.yaml"
        file.write_text(yaml.safe_dump_all(objects))
        assert main(["simulate", "cluster", "-f", str(file), "--now", "1000000", "-o", "json", *options]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return once


def failure(tmp_path: Path, capsys: pytest.CaptureFixture[str], *objects: Object) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    assert main(["simulate", "cluster", "-f", str(file)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    return told.err.replace(str(tmp_path), "")


def test_the_shape_of_the_json(run: Run) -> None:
    """All lists, always there; rows in order of their names."""
    group = other("PodGroup", "scheduling.sigs.k8s.io/v1alpha1", "g", spec={"minMember": 2})
    found = run(node(), node("n0"), pod("b"), pod("a"), pod("c", "9"), group)
    lists = ["placements", "nominations", "victims", "pending", "gangs"]
    assert list(found) == [*lists, "queues", "jobs", "workloads", "preemptions", "served"]
    assert [row["pod"] for row in found["placements"]] == ["default/a", "default/b"]
    assert found["pending"] == [
        {"pod": "default/c", "reason": "RequestTooLarge", "message": "0/2 nodes are available: 2 Insufficient cpu."}
    ]
    assert found["gangs"] == [{"name": "default/g", "phase": "Pending", "scheduled": 0, "minMember": 2}]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As every other command reads files."""
    stream = io.TextIOWrapper(io.BytesIO(yaml.safe_dump_all([node(), pod()]).encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["simulate", "cluster", "-f", "-", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["placements"] == [{"pod": "default/p", "node": "n1"}]


def test_settings(run: Run, tmp_path: Path) -> None:
    """The scheduler's own file."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("preemption: {enable: false}\n")
    low = pod("low", "4", nodeName="n1", priority=1)
    found = run(node(), low, pod("high", "4", priority=10), options=("--settings", str(settings)))
    assert found["victims"] == []


def test_what_if_is_told(run: Run) -> None:
    """Beside the lists, where it was asked for."""
    found = run(node(), pod("a", "3"), pod("b", "3"), options=("--what-if", "nodes=1"))
    assert found["whatIf"] == {"nodes": 1, "like": "n1", "workloads": ["default/b"]}


def test_queues_as_json(run: Run) -> None:
    """Amounts by resource in a manifest's numbers."""
    queue = other(
        "Queue", "sublet.dev/v1alpha1", "team", spec={"quota": {"soft": {"cpu": "1500m"}, "hard": {"cpu": 3}}}
    )
    found = run(node(), queue, pod("p", "2", labels={"sublet.dev/queue": "team"}))
    (team,) = found["queues"][-1:]
    assert (team["name"], team["nominal"], team["used"], team["borrowed"]) == (
        "team",
        {"cpu": 1.5},
        {"cpu": 2},
        {"cpu": 0.5},
    )
    assert (team["dominantShare"], found["jobs"]) == (
        0.5,
        [{"name": "default/p", "queue": "team", "state": "Running", "reason": ""}],
    )


@pytest.mark.parametrize(
    "words", [["--cycles", "0"], ["--what-if", "nodes=0"], ["--what-if", "nodes=1,like=x"], ["--cycles", "many"]]
)
def test_a_wrong_option(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named, with nothing on standard output."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node(), pod()]))
    assert main(["simulate", "cluster", "-f", str(file), *words]) == 2
    told = capsys.readouterr()
    assert told.out == "" and words[0] in told.err


FAULTS = {
    "a PodGroup's PriorityClass that is not given": (
        [node(), other("PodGroup", "scheduling.k8s.io/v1beta1", "g", spec={"priorityClassName": "gold"}), pod()],
        "error: /cluster.yaml document 2: PodGroup default/g: spec.priorityClassName: no PriorityClass gold is given (give it too, or priority)\n",
    ),
    "a PriorityClass that is not given": (
        [node(), pod(priorityClassName="gold")],
        "error: /cluster.yaml document 2: Pod default/p: spec.priorityClassName: no PriorityClass gold is given (give it too, or priority)\n",
    ),
    "an amount that is none": (
        [node(), pod(cpu="many")],
        "error: /cluster.yaml document 2: Pod default/p: container main.resources.requests.cpu: ",
    ),
    "a Node's amount": (
        [node(cpu="many"), pod()],
        "error: /cluster.yaml document 1: Node n1: status.allocatable.cpu: ",
    ),
    "a budget that says nothing": (
        [pod(), other("PodDisruptionBudget", "policy/v1", spec={"selector": {}})],
        "error: /cluster.yaml document 2: PodDisruptionBudget default/x: spec: has neither minAvailable nor maxUnavailable",
    ),
    "a budget's percentage": (
        [pod(), other("PodDisruptionBudget", "policy/v1", spec={"minAvailable": "half", "selector": {}})],
        "error: /cluster.yaml document 2: PodDisruptionBudget default/x: spec.minAvailable: is 'half' (write a whole number or a percentage such as 50%)\n",
    ),
    "neither pods nor queues": (
        [node()],
        "error: /cluster.yaml: neither a Pod nor a queue is given (add Pods, as kubectl get pods -A -o yaml prints them, or queues)\n",
    ),
    "a queue's amount": (
        [node(), other("Queue", "sublet.dev/v1alpha1", spec={"quota": {"hard": {"gpu": "many"}}})],
        "error: /cluster.yaml document 2: Queue x: spec.quota.hard",
    ),
    "a queue of Volcano": (
        [other("Queue", "scheduling.volcano.sh/v1beta1", spec={"weight": 0})],
        "error: /cluster.yaml document 1: Queue.scheduling.volcano.sh x: spec.weight: is 0 (write a whole number of 1 or more)\n",
    ),
    "two queues of one name": (
        [other("Queue", "sublet.dev/v1alpha1", spec={}), other("Queue", "scheduling.volcano.sh/v1beta1", spec={})],
        "error: Queue.scheduling.volcano.sh x: has the name of Queue x, which counts (rename one of them)\n",
    ),
    "a template's count": (
        [node(), other("Pod", "v1") | {"metadata": {"name": "x", "annotations": {"sublet.dev/count": "0"}}}],
        "error: /cluster.yaml document 2: Pod default/x: metadata.annotations[sublet.dev/count]: is '0' (write a whole number from 1 to 100000)\n",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_wrong_is_named(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, document, object and field; nothing on standard output."""
    objects, expected = FAULTS[case]
    assert failure(tmp_path, capsys, *objects).startswith(expected)


def test_what_does_not_count_is_noted(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error: kinds not known, profiles of quotas, fields that nothing acts on, and pods of other schedulers."""
    file = tmp_path / "cluster.yaml"
    foreign = pod("foreign", schedulerName="default-scheduler")
    theirs = other("Queue", "scheduling.volcano.sh/v1beta1", "theirs", spec={"priority": 3})
    profile = other("ElasticQuotaProfile", "quota.koordinator.sh/v1alpha1")
    objects = (theirs, profile, other("Queue", "x/v1"), other("Service", "v1"))
    file.write_text(yaml.safe_dump_all([node(), pod(), foreign, *objects]))
    assert main(["simulate", "cluster", "-f", str(file)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: queues of these kinds do not count yet: ElasticQuotaProfile",
        "note: objects of other kinds are not looked at: Queue of x, Service",
        "note: Queue theirs: spec.priority 3: queues are ordered by their shares",
        "note: Pods of another spec.schedulerName, which are not placed: 1",
    ]


@pytest.mark.parametrize("nodes", [True, False])
def test_kueues_objects_in_both_versions(nodes: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The published manifests, and the same in v1beta2's words: where everything goes, and by which flavour."""
    folder = ROOT / "examples" / "kueue"
    others = ["pods.yaml", *(["nodes.yaml"] if nodes else [])]
    newer = (folder / "training.yaml").read_text().replace("v1beta1", "v1beta2").replace("cohort:", "cohortName:")
    (tmp_path / "training.yaml").write_text(newer)
    told = []
    for file in (folder / "training.yaml", tmp_path / "training.yaml"):
        words = [word for path in (file, *(folder / name for name in others)) for word in ("-f", str(path))]
        assert main(["simulate", "cluster", *words, "-o", "json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    flavors = {each["name"]: each["flavors"].get("nvidia.com/gpu") for each in told[0]["workloads"]}
    assert flavors == {
        "ml-production/serve": "gpu-a100",
        "ml-research/pretrain": "gpu-a100",
        "ml-research/sweep": "gpu-v100" if nodes else "gpu-a100",
        "ml-research/evaluate": None,
    }


def test_nothing_to_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says so."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node(), pod(nodeName="n1")]))
    assert main(["simulate", "cluster", "-f", str(file)]) == 0
    assert capsys.readouterr().out == "no pod waits for a node\n"


def test_the_documented_output_is_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/simulate-cluster.md holds the examples' tables letter by letter, and the JSON of the first."""
    monkeypatch.chdir(ROOT)
    for words in (EXAMPLE, QUEUES, [*EXAMPLE, "--what-if", "nodes=1"]):
        assert main(words) == 0
        assert f"```console\n$ sublet {' '.join(words)}\n{capsys.readouterr().out}```\n" in PAGE
    assert main([*EXAMPLE, "-o", "json"]) == 0
    told = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert told == [json.loads(capsys.readouterr().out)]


def test_what_a_quota_says_of_other_namespaces(run: Run) -> None:
    """A note, as the scheduler only tells its writer; everything else of it counts."""
    lists = {"quota.scheduling.koordinator.sh/namespaces": '["default"]'}
    quota = other("ElasticQuota", "scheduling.sigs.k8s.io/v1alpha1", "mine", spec={"max": {"cpu": 0}})
    quota["metadata"] |= {"namespace": "evil", "annotations": lists}
    found = run(node(), quota, pod())
    assert found["placements"] == [{"pod": "default/p", "node": "n1"}]
    assert [queue["name"] for queue in found["queues"]][-1] == "mine"
