"""What paddle.distributed reads."""

from __future__ import annotations

from peer_cases import FIRST, HOSTS, PEERS

from jobs.core.frameworks.paddle import environment


def test_endpoints() -> None:
    told, endpoints = environment(PEERS, FIRST), [f"{host}:37777" for host in HOSTS]
    assert (told["PADDLE_TRAINER_ID"], told["PADDLE_TRAINERS_NUM"], told["PADDLE_NNODES"]) == ("1", "3", "3")
    assert told["PADDLE_TRAINER_ENDPOINTS"] == ",".join(endpoints)
    assert (told["PADDLE_CURRENT_ENDPOINT"], told["PADDLE_MASTER"]) == (endpoints[1], endpoints[0])
    assert told["TRAINING_ROLE"] == "TRAINER"
