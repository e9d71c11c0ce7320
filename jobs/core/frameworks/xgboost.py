"""XGBoost: Rabit's tracker on the first pod (`DMLC_*`), and what Kubeflow's examples read besides.

Source: dmlc-core tracker (DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_TASK_ID, DMLC_NUM_WORKER); Kubeflow training
operator pkg/controller.v1/xgboost.
"""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

PORT_NAME, PORT = "xgboostjob-port", 9999


def environment(peers: Peers, member: Member) -> dict[str, str]:
    """The first pod runs the tracker and is a worker as well."""
    address, port = peers.host(peers.members[0]), str(peers.port(PORT_NAME, PORT))
    size, rank = str(len(peers.members)), str(peers.rank(member))
    return {
        "DMLC_TRACKER_URI": address,
        "DMLC_TRACKER_PORT": port,
        "DMLC_NUM_WORKER": size,
        "DMLC_TASK_ID": rank,
        "DMLC_ROLE": "worker",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": size,
        "RANK": rank,
        "WORKER_ADDRS": peers.shared(_others),
        "WORKER_PORT": port,
    }


def _others(peers: Peers) -> str:
    return ",".join(peers.host(each) for each in peers.members[1:])
