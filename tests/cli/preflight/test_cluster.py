"""What is asked of a cluster before anything is installed, and what its answers mean."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cli.preflight.cluster import look
from kube.client import KubeClient
from model.fault import KubernetesFault
from tests.cli.preflight.test_command import ALLOWED, LENT, cluster, node
from tests.cli.spoken import spoken
from view.cluster_check import DEFINITIONS, CheckedCluster

POLICIES = ("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
CUSTOM = ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")


def looked(folder: Path, answers: dict[tuple[str, str], Any]) -> CheckedCluster:
    with spoken(folder, answers) as server:

        async def whole() -> CheckedCluster:
            async with await KubeClient.connect(server.kubeconfig, "test") as client:
                return await look(client)

        return asyncio.run(whole())


def test_the_facts(tmp_path: Path) -> None:
    """Version, workloads, definitions and nodes by kind."""
    runtime = "containerd://1.7"
    answers = cluster(nodes=(node(runtime), node(runtime), node("cri-o://1.30")), minor="30+")
    assert looked(tmp_path, answers) == CheckedCluster(
        version=(1, 30),
        version_text="v1.30+.0",
        policies=True,
        definitions=frozenset(DEFINITIONS),
        nodes=((("amd64", "6.1.0", runtime), 2), (("amd64", "6.1.0", "cri-o://1.30"), 1)),
    )


def test_what_is_not_served_is_not_there(tmp_path: Path) -> None:
    """404 is an answer, for definitions and policies alike."""
    answers = {asked: body for asked, body in cluster().items() if asked not in (POLICIES, CUSTOM)}
    found = looked(tmp_path, answers)
    assert (found.policies, found.definitions) == (False, frozenset())


def test_what_may_not_be_done(tmp_path: Path) -> None:
    """Every right that installing needs is asked for."""
    assert looked(tmp_path, cluster(allowed=False)).denied[:2] == ("create namespaces", "create daemonsets.apps")
    assert looked(tmp_path, cluster() | {ALLOWED: {}}).denied != ()


@pytest.mark.parametrize(("conditions", "foreign"), [([], ("n1",)), ([{"type": "ColocationReady"}], ())])
def test_who_lends_there(conditions: list[dict[str, str]], foreign: tuple[str, ...], tmp_path: Path) -> None:
    """Batch resources of a node that has no condition of ours are somebody else's."""
    assert looked(tmp_path, cluster(nodes=(node(**LENT, conditions=conditions),))).foreign == foreign


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(KubernetesFault):
        looked(tmp_path, {})
