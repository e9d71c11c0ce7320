"""PaddlePaddle: collective training by endpoints, and `paddle.distributed.launch` by its master.

Source: https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/launch_en.html; Kubeflow training
operator pkg/controller.v1/paddlepaddle.
"""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

PORT_NAME, PORT = "paddlejob-port", 37777


def environment(peers: Peers, member: Member) -> dict[str, str]:
    """All pods are trainers."""
    port = peers.port(PORT_NAME, PORT)
    rank, size = peers.rank(member), str(len(peers.members))
    return {
        "PADDLE_JOB_ID": peers.job,
        "PADDLE_MASTER": _endpoint(peers, peers.members[0]),
        "PADDLE_NNODES": size,
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": size,
        "PADDLE_TRAINER_ENDPOINTS": peers.shared(_endpoints),
        "PADDLE_CURRENT_ENDPOINT": _endpoint(peers, member),
        "PADDLE_PORT": str(port),
        "TRAINING_ROLE": "TRAINER",
    }


def _endpoints(peers: Peers) -> str:
    return ",".join(_endpoint(peers, each) for each in peers.members)


def _endpoint(peers: Peers, member: Member) -> str:
    return f"{peers.host(member)}:{peers.port(PORT_NAME, PORT)}"
