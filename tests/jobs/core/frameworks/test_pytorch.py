"""What torch.distributed and torchrun read."""

from __future__ import annotations

import msgspec
import pytest
from peer_cases import FIRST, HOSTS, MASTER, PEERS, SECOND

from jobs.core.frameworks.pytorch import environment
from jobs.core.peers import ElasticPeers
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


@pytest.mark.parametrize(("member", "leads"), [(MASTER, 1), (FIRST, 0)])
def test_torchrun_of_an_elastic_job_meets_at_the_first_pod(member: Member, leads: int) -> None:
    """As many as there are, by names that all know; the rest as of any job."""
    elastic = msgspec.structs.replace(PEERS, elastic=ElasticPeers(2, 5, "uid-3"))
    told, plain = environment(elastic, member), environment(PEERS, member)
    assert {name: value for name, value in told.items() if plain.get(name) != value} == {
        "PET_NNODES": "2:5", "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"{HOSTS[0]}:23456",
        "PET_RDZV_ID": "uid-3", "PET_RDZV_CONF": f"is_host={leads}", "PET_MAX_RESTARTS": "10",
        "PET_LOCAL_ADDR": HOSTS[0] if leads else HOSTS[1], "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }  # fmt: skip


def test_a_port_of_its_own() -> None:
    own = msgspec.structs.replace(PEERS, ports={"pytorchjob-port": 29500})
    assert environment(own, FIRST)["MASTER_PORT"] == environment(own, FIRST)["PET_MASTER_PORT"] == "29500"
