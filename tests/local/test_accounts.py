"""Who the programs of an embedded cluster are: lines that its API server reads, tokens bound to an agent's Node."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.apiserver.authentication.token_file import TokenFile
from local.accounts import give_agent_tokens, kubeconfig_of, link_token_of, users, write_secrets
from local.choices import Choices, NodeSlot
from local.rundir import RunDirectory
from model.fault import KubernetesFault
from tests.kube.conftest import ScriptedServer, says

SLOT = NodeSlot(1, "worker", "abc-1", "-1")
NODE = {"metadata": {"name": "worker", "uid": "u-1"}}


def test_programs_are_the_accounts_that_deploy_gives_rights_to(tmp_path: Path) -> None:
    """Every line of the token file is read back as who it stands for; agents have none in it."""
    run, choices = RunDirectory(tmp_path), Choices("worker", "abc", process_nodes=2)
    run.keys.mkdir()
    tokens = write_secrets(run, choices)
    known = TokenFile.read(run.keys / "users")
    found = {name: known.user_of(token.encode()) for name, token in tokens.items()}
    assert {name: user.name for name, user in found.items() if user} == {
        "admin": "sublet:admin",
        **{f"node{slot.suffix}": f"system:node:{slot.name}" for slot in choices.slots},
        "scheduler": "system:serviceaccount:sublet-system:sublet-scheduler",
        "admission": "system:serviceaccount:sublet-system:sublet-admission",
    }
    scheduler, admin = found["scheduler"], found["admin"]
    assert scheduler and admin
    assert "system:serviceaccounts:sublet-system" in scheduler.groups and "system:masters" in admin.groups


def test_a_bare_cluster_has_its_own_programs_only() -> None:
    assert set(users(Choices("worker", "abc", bare=True))) == {"admin", "node"}


def given(folder: Path, *answers: Any) -> tuple[RunDirectory, list[Any]]:
    """The run directory afterwards, and the bodies of what was asked."""
    run = RunDirectory(folder)
    run.keys.mkdir()
    (run.keys / "api-ca.crt").write_text("an authority")

    async def play() -> list[Any]:
        server = ScriptedServer(folder)
        await (await server.start()).close()
        server.answers = [says(*answer) for answer in answers]
        try:
            await give_agent_tokens(run, SLOT, "https://127.0.0.1:6443")
        finally:
            await server.stop()
        return [body for *_, body in server.requests if body]

    return run, asyncio.run(play())


def test_an_agents_tokens_are_bound_to_its_node(tmp_path: Path) -> None:
    """One for the API server and one for the scheduler, neither good for the other, in files of the owner alone."""
    run, asked = given(tmp_path, (NODE,), ({"status": {"token": "api"}}, 201), ({"status": {"token": "link"}}, 201))
    assert [body["spec"]["audiences"] for body in asked] == [[], ["sublet-scheduler"]]
    assert {tuple(body["spec"]["boundObjectRef"].values()) for body in asked} == {("v1", "Node", "worker", "u-1")}
    config, link = kubeconfig_of(run, "agent-1"), link_token_of(run, SLOT)
    assert yaml.safe_load(config.read_text())["users"][0]["user"]["token"] == "api" and link.read_text() == "link"
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (config, link))


def test_no_file_is_written_for_a_node_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KubernetesFault):
        given(tmp_path, ({"reason": "NotFound"}, 404))
    assert not list((tmp_path / "keys").glob("*agent*")) and not (tmp_path / "keys" / "link-token-1").exists()
