"""The environment of a pod by its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jobs.core.frameworks import mpi, paddle, pytorch, tensorflow, xgboost
from jobs.core.peers import Peers
from model.job.job import Framework, Member

_ENVIRONMENTS: Mapping[Framework, Callable[[Peers, Member], dict[str, str]]] = {
    Framework.PYTORCH: pytorch.environment,
    Framework.TENSORFLOW: tensorflow.environment,
    Framework.MPI: mpi.environment,
    Framework.XGBOOST: xgboost.environment,
    Framework.PADDLE: paddle.environment,
}


def environment(framework: Framework | None, peers: Peers, member: Member) -> dict[str, str]:
    """Variables by name; none without a framework."""
    return _ENVIRONMENTS[framework](peers, member) if framework is not None else {}
