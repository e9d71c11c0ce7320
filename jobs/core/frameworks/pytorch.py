"""PyTorch: torch.distributed's own variables, and those of torchrun (`PET_*`).

Source: https://pytorch.org/docs/stable/distributed.html (environment variable initialization); Kubeflow training
operator pkg/controller.v1/pytorch.
"""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

PORT_NAME, PORT = "pytorchjob-port", 23456


def environment(peers: Peers, member: Member) -> dict[str, str]:
    """One process a pod counts by itself; torchrun starts as many as it is told, and counts pods."""
    address, port = peers.host(peers.members[0]), str(peers.port(PORT_NAME, PORT))
    size, rank = str(len(peers.members)), str(peers.rank(member))
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": size,
        "RANK": rank,
        "PET_MASTER_ADDR": address,
        "PET_MASTER_PORT": port,
        "PET_NNODES": size,
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": str(peers.slots),
        "PYTHONUNBUFFERED": "1",
    }
