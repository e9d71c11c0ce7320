"""TF_CONFIG: the cluster, and who reads it."""

from __future__ import annotations

import msgspec
from peer_cases import HOSTS, MASTER, PEERS, SECOND

from jobs.core.frameworks.tensorflow import environment
from jobs.core.peers import Peers
from model.job.job import Member


def test_the_cluster_by_type() -> None:
    told = msgspec.json.decode(environment(PEERS, SECOND)["TF_CONFIG"])
    assert told == {
        "cluster": {"master": [f"{HOSTS[0]}:2222"], "worker": [f"{HOSTS[1]}:2222", f"{HOSTS[2]}:2222"]},
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }
    assert msgspec.json.decode(environment(PEERS, MASTER)["TF_CONFIG"])["task"] == {"type": "master", "index": 0}


def test_an_evaluator_is_no_member_of_the_cluster() -> None:
    evaluator = Member("evaluator", 0)
    told = msgspec.json.decode(environment(Peers("train", (MASTER, evaluator)), evaluator)["TF_CONFIG"])
    assert list(told["cluster"]) == ["master"] and told["task"]["type"] == "evaluator"
