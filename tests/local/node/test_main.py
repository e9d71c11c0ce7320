"""What the node's command line becomes is the embedded cluster's own settings."""

from __future__ import annotations

import pytest

from embedded.cgroups.drivers import CgroupDriver
from embedded.node.settings import Kernel
from local.node.__main__ import _parser, _settings

REQUIRED = ("--kubeconfig", "k", "--run-dir", "r", "--tls-cert", "c", "--tls-key", "k", "--kubelet-token-file", "t")


@pytest.mark.parametrize(
    ("told", "driver"),
    [((), CgroupDriver.CGROUPFS), (("--cgroup-driver", "systemd"), CgroupDriver.SYSTEMD)],
    ids=["default", "systemd"],
)
def test_the_driver_is_the_nodes_own(told: tuple[str, ...], driver: CgroupDriver) -> None:
    """Not the agent's of the same name: paths are decided by which it is."""
    settings = _settings(_parser().parse_args([*REQUIRED, *told]))
    assert settings.cgroup_driver is driver and settings.kernel is Kernel.REAL
