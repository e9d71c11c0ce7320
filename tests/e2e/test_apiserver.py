"""`sublet up --apiserver`: the same cluster on a real kube-apiserver."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.e2e.conftest import RunningCluster, until

pytestmark = [pytest.mark.e2e, pytest.mark.kernel]


@pytest.mark.skipif(os.geteuid() != 0, reason="addresses of pods become this machine's: needs root")
def test_pods_run_on_a_real_api_server(tmp_path: Path) -> None:
    """With its controllers where they are there; nothing is left of its programs afterwards."""
    apiserver = shutil.which("kube-apiserver")
    if apiserver is None or shutil.which("etcd") is None:
        pytest.skip("needs kube-apiserver and etcd on PATH")
    if shutil.which("kube-controller-manager", path=str(Path(apiserver).parent)) is None:
        pytest.skip("needs kube-controller-manager beside kube-apiserver")
    cluster = RunningCluster(tmp_path, options=["--apiserver", apiserver])
    try:
        assert until(lambda: "ready after" in cluster.output.read_text() or cluster.process.poll() is not None, 100.0)
        assert "Kubernetes v" in cluster.output.read_text()
        cluster.kubectl("create", "deployment", "web", "--image=any", "--replicas=2", "--", "sleep", "1000")
        running = ("get", "pods", "--field-selector=status.phase=Running", "--no-headers", "-l", "app=web")
        assert until(lambda: len(cluster.kubectl(*running).splitlines()) == 2, 60.0)
        assert cluster.kubectl("get", "--raw", "/version").find("sublet") < 0
        assert cluster.kubectl("exec", "deployment/web", "--", "echo", "reached").strip() == "reached"
    finally:
        cluster.process.send_signal(signal.SIGINT)
        assert cluster.process.wait(60) == 0, cluster.output.read_text()
    assert not (tmp_path / "up" / "keys").exists()
