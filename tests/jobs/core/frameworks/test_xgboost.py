"""What Rabit's clients read."""

from __future__ import annotations

from peer_cases import HOSTS, PEERS, SECOND

from jobs.core.frameworks.xgboost import environment


def test_the_tracker_is_on_the_first_pod() -> None:
    told = environment(PEERS, SECOND)
    assert (told["DMLC_TRACKER_URI"], told["DMLC_TRACKER_PORT"]) == (HOSTS[0], "9999")
    assert (told["DMLC_NUM_WORKER"], told["DMLC_TASK_ID"], told["DMLC_ROLE"]) == ("3", "2", "worker")
    assert (told["MASTER_ADDR"], told["WORLD_SIZE"], told["RANK"]) == (HOSTS[0], "3", "2")
    assert told["WORKER_ADDRS"] == ",".join(HOSTS[1:])
