"""PyTorch: torch.distributed's own variables, and those of torchrun (`PET_*`), which meets again in an elastic job.

Source: https://pytorch.org/docs/stable/distributed.html (environment variable initialization);
https://pytorch.org/docs/stable/elastic/run.html; torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py
(`is_host`), dynamic_rendezvous.py (`next_rendezvous`); Kubeflow training operator pkg/controller.v1/pytorch.
"""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

PORT_NAME, PORT = "pytorchjob-port", 23456
_RESTARTS = 10
"""Of the processes in a pod: to torchrun one that lost its peer has failed."""


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
        **_elastic(peers, member, f"{address}:{port}"),
    }


def _elastic(peers: Peers, member: Member, endpoint: str) -> dict[str, str]:
    """torchrun's meeting place is the first pod, which belongs to the minimum; nobody has to guess which host that is.

    Addresses are the names of the job's Service: a pod's own FQDN is not known to others everywhere.
    """
    if peers.elastic is None:
        return {}
    return {
        "PET_NNODES": f"{peers.elastic.minimum}:{peers.elastic.maximum}",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": endpoint,
        "PET_RDZV_ID": peers.elastic.meeting,
        "PET_RDZV_CONF": f"is_host={int(peers.rank(member) == 0)}",
        "PET_LOCAL_ADDR": peers.host(member),
        "PET_MAX_RESTARTS": str(_RESTARTS),
        # With a store that pods share (PyTorch 2.15) one that joins later waits for the address of the leader, who told
        # it in the first round alone; after a minute all fail.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
