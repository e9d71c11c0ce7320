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
    endpoints = [f"{peers.host(each)}:{port}" for each in peers.members]
    rank, size = peers.rank(member), str(len(peers.members))
    return {
        "PADDLE_JOB_ID": peers.job,
        "PADDLE_MASTER": endpoints[0],
        "PADDLE_NNODES": size,
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": size,
        "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
        "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
        "PADDLE_PORT": str(port),
        "TRAINING_ROLE": "TRAINER",
    }
