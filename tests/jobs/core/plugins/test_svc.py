"""Hosts of each task, and how containers get at them."""

from __future__ import annotations

from peer_cases import HOSTS, PEERS

from jobs.core.peers import Peers
from jobs.core.plugins.svc import config_map_name, hosts, network_policy, references
from model.job.job import Member


def test_hosts_by_task() -> None:
    assert hosts(PEERS, ("master", "worker")) == {
        "master.host": HOSTS[0],
        "VC_MASTER_HOSTS": HOSTS[0],
        "VC_MASTER_NUM": "1",
        "worker.host": f"{HOSTS[1]}\n{HOSTS[2]}",
        "VC_WORKER_HOSTS": f"{HOSTS[1]},{HOSTS[2]}",
        "VC_WORKER_NUM": "2",
    }


def test_names_of_variables_have_no_dash() -> None:
    told = hosts(Peers("train", (Member("ps-a", 0),)), ("ps-a", "none"))
    assert list(told) == ["ps_a.host", "VC_PS_A_HOSTS", "VC_PS_A_NUM", "none.host", "VC_NONE_HOSTS", "VC_NONE_NUM"]


def test_variables_come_from_the_config_map() -> None:
    found = references("train", {"worker.host": "", "VC_WORKER_NUM": "2"})
    assert found == [
        {"name": "VC_WORKER_NUM", "valueFrom": {"configMapKeyRef": {"name": "train-svc", "key": "VC_WORKER_NUM"}}}
    ]
    assert config_map_name("train") == "train-svc"


def test_only_the_jobs_own_pods_get_in() -> None:
    own = {"podSelector": {"matchLabels": {"a": "b"}}}
    assert network_policy({"a": "b"}) == {**own, "ingress": [{"from": [own]}], "policyTypes": ["Ingress"]}
