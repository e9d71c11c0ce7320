"""`sublet simulate cluster`: objects in, placements, victims and reasons out; the decisions are in scheduler/cases."""

from __future__ import annotations

import io
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "simulate-cluster.md").read_text()
EXAMPLE = ["simulate", "cluster", "-f", "examples/simulate/cluster", "--now", "2026-01-02T03:04:30Z"]
Object = dict[str, Any]
Run = Callable[..., dict[str, Any]]


def node(name: str = "n1", cpu: str = "4") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    }


def pod(
    name: str = "p", cpu: str = "1", *, labels: Object | None = None, resources: Object | None = None, **spec: Any
) -> Object:
    container = {"name": "main", "resources": resources or {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def other(kind: str, version: str, name: str = "x", **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


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
    """Five lists, always there; rows in order of their names."""
    group = other("PodGroup", "scheduling.sigs.k8s.io/v1alpha1", "g", spec={"minMember": 2})
    found = run(node(), node("n0"), pod("b"), pod("a"), pod("c", "9"), group)
    assert list(found) == ["placements", "nominations", "victims", "pending", "gangs"]
    assert [row["pod"] for row in found["placements"]] == ["default/a", "default/b"]
    assert found["pending"] == [
        {"pod": "default/c", "reason": "RequestTooLarge", "message": "0/2 nodes are available: 2 Insufficient cpu."}
    ]
    assert found["gangs"] == [{"name": "default/g", "phase": "Pending", "scheduled": 0, "minMember": 2}]


def test_a_preemption_is_told_from_all_sides(run: Run) -> None:
    """Who is nominated, which pod is evicted for it and why; nothing is placed yet."""
    low = pod("low", "4", nodeName="n1", priority=1)
    found = run(node(), low, pod("high", "4", priority=10))
    assert found["nominations"] == [{"pod": "default/high", "node": "n1"}]
    assert found["victims"] == [
        {"pod": "default/low", "node": "n1", "preemptor": "default/high", "reason": "PreemptionByScheduler"}
    ]
    assert found["placements"] == []


def test_until_settled(run: Run) -> None:
    """The victim is gone, and nobody waits."""
    objects = [node(), pod("low", "4", nodeName="n1", priority=1), pod("high", "4", priority=10)]
    found = run(*objects, options=("--until-settled",))
    assert found["placements"] == [{"pod": "default/high", "node": "n1"}]
    assert found["pending"] == found["nominations"] == []


def test_a_victim_that_asks_to_be_told_is_told_of_too(run: Run) -> None:
    """Its eviction comes later; the answer is the same."""
    low = pod("low", "4", nodeName="n1", priority=1)
    low["metadata"]["annotations"] = {"sublet.dev/preemption-notice-seconds": "30"}
    found = run(node(), low, pod("high", "4", priority=10))
    assert [row["pod"] for row in found["victims"]] == ["default/low"]


def test_the_order_of_the_input_does_not_matter(run: Run) -> None:
    """Same objects, same answer."""
    objects = [node(f"n{i}", "8") for i in range(5)]
    objects += [pod(f"old{i}", "3", nodeName=f"n{i % 5}", priority=i % 3) for i in range(8)]
    objects += [pod(f"new{i}", str(1 + i % 4), priority=2 + i % 2) for i in range(12)]
    first = run(*objects)
    for seed in range(3):
        random.Random(seed).shuffle(objects)
        assert run(*objects) == first


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


def test_a_group_has_the_priority_of_its_class(run: Run) -> None:
    """As admission settles it: its pods go before a pod that was there earlier, and not without the class."""
    group = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    gold = other("PriorityClass", "scheduling.k8s.io/v1", "gold", value=1000)
    pods = (pod("a", cpu="4"), pod("b", cpu="4", schedulingGroup={"podGroupName": "g"}))
    for extra, first in (({}, "a"), ({"priorityClassName": "gold"}, "b")):
        asked = other("PodGroup", "scheduling.k8s.io/v1beta1", "g", spec=group | extra)
        found = run(node(), gold, asked, *pods)
        assert [each["pod"] for each in found["placements"]] == [f"default/{first}"]


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
    "no pods": (
        [node()],
        "error: /cluster.yaml: no Pod is given (add some, as kubectl get pods -A -o yaml prints them)\n",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_wrong_is_named(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, document, object and field; nothing on standard output."""
    objects, expected = FAULTS[case]
    assert failure(tmp_path, capsys, *objects).startswith(expected)


BUDGETS = {
    "at least one of two": ({"minAvailable": 1}, 1),
    "at least half of two": ({"minAvailable": "50%"}, 1),
    "percentages are rounded up": ({"minAvailable": "51%"}, 0),
    "at most one may be missing": ({"maxUnavailable": 1}, 1),
    "none may be missing": ({"maxUnavailable": 0}, 0),
    "all may be missing": ({"maxUnavailable": "100%"}, 2),
}


@pytest.mark.parametrize("case", BUDGETS)
def test_a_budget_without_a_status(case: str, run: Run) -> None:
    """It is kept for as many pods as it does not allow to go: others of higher priority go for them."""
    spec, allowed = BUDGETS[case]
    kept = [pod(f"kept{i}", "1", labels={"app": "kept"}, nodeName="n1", priority=1) for i in range(2)]
    others = [pod(f"other{i}", "1", nodeName="n2", priority=1) for i in range(2)]
    selector = {"selector": {"matchLabels": {"app": "kept"}}}
    wanted = pod("high", "2", priority=10)
    found = run(
        node("n1", "2"),
        node("n2", "2"),
        *kept,
        *others,
        wanted,
        other("PodDisruptionBudget", "policy/v1", spec=spec | selector),
    )
    on = {row["node"] for row in found["victims"]}
    assert len(found["victims"]) == 2 and on <= {"n1", "n2"}
    assert allowed == 2 or on == {"n2"}


def test_what_does_not_count_is_noted(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error: kinds not known, queues, and pods of other schedulers."""
    file = tmp_path / "cluster.yaml"
    foreign = pod("foreign", schedulerName="default-scheduler")
    file.write_text(yaml.safe_dump_all([node(), pod(), foreign, other("Queue", "x/v1"), other("Service", "v1")]))
    assert main(["simulate", "cluster", "-f", str(file)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "note: queues and quotas do not count yet: Queue",
        "note: objects of other kinds are not looked at: Service",
        "note: Pods of another spec.schedulerName, which are not placed: 1",
    ]


def test_nothing_to_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says so."""
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([node(), pod(nodeName="n1")]))
    assert main(["simulate", "cluster", "-f", str(file)]) == 0
    assert capsys.readouterr().out == "no pod waits for a node\n"


def test_the_documented_output_is_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/simulate-cluster.md holds the example's table letter by letter, and its JSON."""
    monkeypatch.chdir(ROOT)
    assert main(EXAMPLE) == 0
    command = "$ sublet " + " ".join(EXAMPLE)
    assert f"```console\n{command}\n{capsys.readouterr().out}```\n" in PAGE
    assert main([*EXAMPLE, "-o", "json"]) == 0
    told = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert told == [json.loads(capsys.readouterr().out)]
