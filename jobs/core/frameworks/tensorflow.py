"""TensorFlow: TF_CONFIG, the cluster and the place of this process in it.

Source: https://www.tensorflow.org/api_docs/python/tf/distribute/cluster_resolver/TFConfigClusterResolver.
"""

from __future__ import annotations

import msgspec

from jobs.core.peers import Peers
from model.job.job import Member

PORT_NAME, PORT = "tfjob-port", 2222
_EVALUATOR = "evaluator"
"""Not a member of the cluster that it evaluates."""


def environment(peers: Peers, member: Member) -> dict[str, str]:
    """Task types are the names of pod sets: chief, master, ps, worker, evaluator."""
    task = {"type": member.task, "index": member.index}
    config = {"cluster": peers.shared(_cluster), "task": task, "environment": "cloud"}
    return {"TF_CONFIG": msgspec.json.encode(config).decode()}


def _cluster(peers: Peers) -> msgspec.Raw:
    """Encoded: it names all members, and each of them gets it."""
    port = peers.port(PORT_NAME, PORT)
    cluster: dict[str, list[str]] = {}
    for each in peers.members:
        if each.task != _EVALUATOR:
            cluster.setdefault(each.task, []).append(f"{peers.host(each)}:{port}")
    return msgspec.Raw(msgspec.json.encode(cluster))
