"""Who may call, and which node they speak for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from reviews_fake import AGENT, AUDIENCE, FakeCluster

from kube.reviews import NODE_KEY, POD_KEY, POD_UID_KEY, Caller
from model.fault import ConfigurationFault, KubernetesFault
from scheduler.link.callers import ReviewedCallers, TokenTable, bearer


@pytest.fixture
def cluster_api() -> FakeCluster:
    return FakeCluster()


def reviewed(cluster: FakeCluster) -> ReviewedCallers:
    client: Any = cluster
    return ReviewedCallers(client, AUDIENCE, "sublet-system:sublet-agent")


@pytest.mark.parametrize(
    ("metadata", "token"),
    [
        ([("authorization", "Bearer t")], "t"),
        ([("x", "y"), ("authorization", "bearer  t ")], "t"),
        ([("authorization", "Basic t")], ""),
        ([("authorization", "t")], ""),
        ([("authorization", b"Bearer t")], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_the_token_of_a_call(metadata: Any, token: str) -> None:
    """As HTTP spells it."""
    assert bearer(metadata) == token


def test_token_file(tmp_path: Path) -> None:
    """Lines of token and name; a broken line is named by number, never quoted."""
    path = tmp_path / "tokens"
    path.write_text('# who may call\nabc,agent\n\n"def","system:node:n1","uid"\n')

    async def working() -> None:
        table = TokenTable.read(path)
        node = await table.caller("def")
        assert node == Caller("system:node:n1") and await table.node_of(node) == "n1"
        person = await table.caller("abc")
        assert person == Caller("agent") and await table.node_of(person) == ""
        assert await table.caller("") is None and await table.caller("de") is None

    asyncio.run(working())
    path.write_text("abc,agent\nsecretwithoutname\n")
    with pytest.raises(ConfigurationFault) as error:
        TokenTable.read(path)
    assert f"{path}:2" in str(error.value)
    assert "secretwithoutname" not in str(error.value)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationFault, match="is not text"):
        TokenTable.read(path)


WHOSE: dict[str, tuple[Caller, str]] = {
    "bound to its node": (Caller(AGENT, extra={NODE_KEY: ("n1",)}), "n1"),
    "bound to its pod": (Caller(AGENT, extra={POD_KEY: ("p",), POD_UID_KEY: ("u",)}), "n2"),
    "bound to a pod of that name before": (Caller(AGENT, extra={POD_KEY: ("p",), POD_UID_KEY: ("older",)}), ""),
    "bound to a pod that is gone": (Caller(AGENT, extra={POD_KEY: ("q",), POD_UID_KEY: ("u",)}), ""),
    "bound to a pod without uid": (Caller(AGENT, extra={POD_KEY: ("p",)}), ""),
    "bound to nothing": (Caller(AGENT), ""),
    "another account on the node": (Caller("system:serviceaccount:x:y", extra={NODE_KEY: ("n1",)}), ""),
    "the same name elsewhere": (Caller("system:serviceaccount:x:sublet-agent", extra={NODE_KEY: ("n1",)}), ""),
    "the kubelet": (Caller("system:node:n1"), ""),
}


@pytest.mark.parametrize("name", WHOSE)
def test_only_the_agent_speaks_for_its_node(cluster_api: FakeCluster, name: str) -> None:
    """By the binding of its token, or by the pod this is bound to."""
    caller, node = WHOSE[name]
    cluster_api.pods["p"] = ("u", "n2")
    assert asyncio.run(reviewed(cluster_api).node_of(caller)) == node


def test_a_pod_that_cannot_be_read_is_no_answer(cluster_api: FakeCluster) -> None:
    """Neither yes nor no."""
    cluster_api.down = True
    with pytest.raises(KubernetesFault):
        asyncio.run(reviewed(cluster_api).node_of(WHOSE["bound to its pod"][0]))


@pytest.mark.parametrize(
    ("method", "allowed"),
    [
        ("/sublet.v1.SchedulerDiagnostics/ExplainPod", True),
        ("/sublet.v1.SchedulerDiagnostics/ListNodes", False),
        ("/sublet.v1.NodeLink/Connect", True),
        ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", True),
        ("/sublet.v1.NodeLinkX/Connect", False),
    ],
)
def test_which_methods(cluster_api: FakeCluster, method: str, allowed: bool) -> None:
    """Diagnostics one by one, as RBAC says; whatever is not known is asked about too."""
    cluster_api.add_person("t", "ann", "/sublet.v1.SchedulerDiagnostics/ExplainPod")

    async def working() -> None:
        callers = reviewed(cluster_api)
        ann = await callers.caller("t")
        assert ann is not None and await callers.allowed(ann, method) is allowed

    asyncio.run(working())
