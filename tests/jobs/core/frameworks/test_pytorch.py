"""What torch.distributed and torchrun read."""

from __future__ import annotations

import msgspec
import pytest
from peer_cases import FIRST, HOSTS, MASTER, PEERS, SECOND

from jobs.core.frameworks.pytorch import environment
from model.job.job import Member


@pytest.mark.parametrize(("member", "rank"), [(MASTER, "0"), (FIRST, "1"), (SECOND, "2")])
def test_ranks(member: Member, rank: str) -> None:
    told = environment(PEERS, member)
    assert (told["MASTER_ADDR"], told["MASTER_PORT"], told["WORLD_SIZE"], told["RANK"]) == (
        HOSTS[0],
        "23456",
        "3",
        rank,
    )
    assert (told["PET_NNODES"], told["PET_NODE_RANK"], told["PET_NPROC_PER_NODE"]) == ("3", rank, "8")


def test_a_port_of_its_own() -> None:
    own = msgspec.structs.replace(PEERS, ports={"pytorchjob-port": 29500})
    assert environment(own, FIRST)["MASTER_PORT"] == environment(own, FIRST)["PET_MASTER_PORT"] == "29500"
