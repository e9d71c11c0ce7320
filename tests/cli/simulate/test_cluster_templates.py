"""A template stands for many pods, and is read once."""

from __future__ import annotations

import pytest

from cli.simulate.cluster_objects import Admission
from cli.simulate.cluster_templates import COUNT, copies, count_of
from model.fault import ConfigurationFault
from tests.cli.simulate.clusters import NOW, Object, decided, given, node, pod


def template(count: str, **fields: object) -> Object:
    found = pod("many", "1", **fields)
    found["metadata"]["annotations"] = {COUNT: count}
    return found


def test_copies_differ_in_name_and_uid_alone() -> None:
    """What they ask for is one object, however many there are."""
    found = given(template("3"))
    (item,) = found.of("Pod")
    admission = Admission(found, NOW)
    made = list(copies(admission.pod(item), count_of(item) or 0, admission))
    assert [each.metadata.name for each in made] == ["many-0", "many-1", "many-2"]
    assert len({each.metadata.uid for each in made}) == 3 and len({id(each.spec) for each in made}) == 1


@pytest.mark.parametrize("told", ["0", "-1", "many", "1.5", "100001", "²"])
def test_a_count_that_is_none(told: str) -> None:
    """File, object and field are named."""
    with pytest.raises(
        ConfigurationFault, match=r"document 2: Pod default/many: metadata.annotations\[sublet.dev/count\]"
    ):
        decided(node(), template(told))


def test_how_many_of_them_run() -> None:
    """One job; those that find room are admitted, the others wait for one reason."""
    found = decided(node(cpu="4"), template("6"))
    assert [(row.outcome, row.count, row.reason) for row in found.workloads] == [
        ("admitted", 4, "Scheduled"),
        ("pending", 2, "Unschedulable"),
    ]
    assert [(row.name, row.state, row.reason) for row in found.jobs] == [("default/many", "Pending", "Unschedulable")]


def test_a_gang_of_them() -> None:
    """Copies of a member are members."""
    labels = {"pod-group.scheduling.sigs.k8s.io": "g"}
    group: Object = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 3},
    }
    found = decided(node(cpu="4"), group, template("3", labels=labels))
    assert [(row.name, row.outcome, row.count) for row in found.workloads] == [("default/g", "admitted", 3)]
    assert [(row.name, row.scheduled) for row in found.gangs] == [("default/g", 3)]


def test_templates_that_run_already() -> None:
    """They take room, and are no workload that waited."""
    found = decided(node(cpu="4"), template("3", nodeName="n1"), pod("late", "2"))
    assert [(row.name, row.outcome) for row in found.workloads] == [("default/late", "pending")]
    assert [(row.name, row.state) for row in found.jobs] == [("default/late", "Pending"), ("default/many", "Running")]
