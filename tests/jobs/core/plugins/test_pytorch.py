"""Ranks of master and workers; nothing for a job without a master."""

from __future__ import annotations

import pytest
from peer_cases import FIRST, HOSTS, MASTER, PEERS, SECOND

from jobs.core.peers import Peers
from jobs.core.plugins.pytorch import environment, port
from model.job.job import Member

OTHER = Member("tensorboard", 0)


@pytest.mark.parametrize(("member", "rank"), [(MASTER, "0"), (FIRST, "1"), (SECOND, "2")])
def test_ranks(member: Member, rank: str) -> None:
    assert environment(PEERS, member, {}) == {
        "MASTER_ADDR": HOSTS[0], "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": rank,
    }  # fmt: skip


def test_other_tasks_have_no_rank() -> None:
    told = environment(Peers("train", (*PEERS.members, OTHER)), OTHER, {})
    assert "RANK" not in told and told["WORLD_SIZE"] == "3"


def test_names_of_its_flags() -> None:
    assert environment(PEERS, FIRST, {"master": "chief"}) == {}
    assert environment(PEERS, SECOND, {"master": "worker", "worker": "none"})["RANK"] == "1"


@pytest.mark.parametrize(("text", "found"), [("29500", "29500"), ("0", "23456"), ("70000", "23456"), ("many", "23456")])
def test_ports(text: str, found: str) -> None:
    assert port({"port": text}) == found
