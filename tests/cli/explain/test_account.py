"""A node's objects as facts, and `sublet explain node` where no agent is asked or none answers."""

from __future__ import annotations

import pytest

from cli.explain.account import account
from cli.main import main
from kube import objects
from model.fault import ConfigurationFault
from model.resources import BATCH_CPU, ResourceVector
from view.lending_cause import LendingRecord

READY = objects.Condition("ColocationReady", "True", "LendingActive", last_heartbeat_time="1970-01-01T00:01:40Z")
METRIC = objects.NodeMetric(objects.Metadata("n1"), status={"updateTime": "1970-01-01T00:02:00Z"})


def node(*conditions: objects.Condition, allocatable: objects.Quantities | None = None) -> objects.Node:
    return objects.Node(
        objects.Metadata("n1"), status=objects.NodeStatus(allocatable=allocatable, conditions=[*conditions])
    )


def test_condition_metric_and_resources_are_read() -> None:
    found = account(node(READY, allocatable={BATCH_CPU: "2k"}), METRIC, answers=True)
    lent = ResourceVector({BATCH_CPU: 2000})
    assert found == LendingRecord("n1", 100.0, True, "LendingActive", 120.0, lent, True)


def test_a_node_without_an_agent_says_nothing() -> None:
    """Other conditions are not the agent's."""
    other = objects.Condition("Ready", "True", last_heartbeat_time="1970-01-01T00:01:40Z")
    assert account(node(other), None, answers=None) == LendingRecord("n1")


def test_a_heartbeat_that_is_no_time_was_never_heard() -> None:
    broken = objects.Condition("ColocationReady", "True", last_heartbeat_time="yesterday")
    assert account(node(broken), None, answers=None).heartbeat_seconds is None


def test_an_amount_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ConfigurationFault, match="Node n1"):
        account(node(allocatable={BATCH_CPU: "many"}), None, answers=None)


def test_without_a_name_the_cluster_cannot_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "node", "--kubeconfig", "absent"]) == 2
    assert "give its name" in capsys.readouterr().err


def test_a_missing_kubeconfig_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "node", "n1", "--kubeconfig", "absent"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
