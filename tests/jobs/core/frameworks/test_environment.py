"""Every framework has an environment, and no other job has one."""

from __future__ import annotations

import pytest
from peer_cases import FIRST, PEERS

from jobs.core.frameworks.environment import environment
from model.job.job import Framework

READ = {
    Framework.PYTORCH: "MASTER_ADDR",
    Framework.TENSORFLOW: "TF_CONFIG",
    Framework.MPI: "OMPI_MCA_orte_default_hostfile",
    Framework.XGBOOST: "DMLC_TRACKER_URI",
    Framework.PADDLE: "PADDLE_TRAINER_ENDPOINTS",
}


@pytest.mark.parametrize("framework", Framework)
def test_of_each_framework(framework: Framework) -> None:
    assert READ[framework] in environment(framework, PEERS, FIRST)


def test_without_a_framework() -> None:
    assert environment(None, PEERS, FIRST) == {}
