"""A first installation, as a platform engineer does it: images built here, a cluster without Sublet, kubectl.

The tests of this folder are one story about one cluster, told in the order of their files; each says what it needs by
a fixture, so that a single one can be run, too. Images are built once (some minutes, from Debian's archive and PyPI), or
taken from $SUBLET_IMAGES, a folder that `make images` left. On a cluster of --kubeconfig its own audit log, of level
Metadata or more, is read from $SUBLET_AUDIT_LOG.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, StartCluster, until
from tests.e2e.deploy.files import control_files
from tests.e2e.deploy.site import Site

NODES = 2
_BUILD_SECONDS = 1500
_STORY_SECONDS = 1800
BYSTANDER = """
apiVersion: v1
kind: Pod
metadata: {name: bystander, namespace: default}
spec:
  tolerations: [{operator: Exists}]
  containers:
    - {name: c, image: busybox, command: [sleep, "7200"], resources: {requests: {cpu: 100m, memory: 32Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: best-effort-bystander, namespace: default}
spec:
  containers: [{name: c, image: busybox, command: [sleep, "7200"]}]
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it is slow: images, a rollout, leases and windows of measurements."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.timeout(_STORY_SECONDS))


@pytest.fixture(scope="session")
def images() -> Iterator[Path]:
    """The image store of all three programs, as this tree has them. Skips where it cannot be built."""
    given = os.environ.get("SUBLET_IMAGES")
    if given:
        yield Path(given).absolute()
        return
    if "VERSION_CODENAME=bookworm" not in Path("/etc/os-release").read_text():
        pytest.skip("images are built on Debian 12; set SUBLET_IMAGES to a folder of `make images`")
    folder = Path(tempfile.mkdtemp(prefix="sublet-images-"))
    downloads = Path(tempfile.gettempdir()) / f"sublet-downloads-{os.geteuid()}"
    script = [sys.executable, str(ROOT / "deploy" / "images" / "assemble.py")]
    where = ["--out", str(folder), "--cache", str(downloads)]
    try:
        done = subprocess.run([*script, *where], capture_output=True, text=True, timeout=_BUILD_SECONDS)
        assert done.returncode == 0, done.stderr
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def bare(request: pytest.FixtureRequest, start_shared_cluster: StartCluster, images: Path) -> Iterator[Site]:
    """A cluster without Sublet, in which two pods of somebody run; what it is like is remembered."""
    # Not pytest's own directory: a unix socket's path holds 107 bytes.
    directory = Path(tempfile.mkdtemp(prefix="sublet-e2e-"))
    elsewhere = request.config.getoption("--kubeconfig")
    audit = Path(os.environ.get("SUBLET_AUDIT_LOG", "")) if elsewhere else directory / "audit.jsonl"
    machine = ["--process-nodes", str(NODES), "--node-name", "worker", "--node-cpu", "8", "--node-memory", "16Gi"]
    log = [] if elsewhere else ["--audit-log", str(audit)]
    cluster = start_shared_cluster(directory=directory, options=["--bare", "--images", str(images), *log, *machine])
    site = Site(cluster, audit)
    cluster.apply(BYSTANDER)
    names = ("pod/bystander", "pod/best-effort-bystander")
    cluster.kubectl("wait", "--for=condition=Ready", *names, "--timeout=50s")
    site.before = (site.nodes(), site.uids("default"), control_files(cluster.endpoints))
    yield site


@pytest.fixture(scope="session")
def site(bare: Site) -> Site:
    """The same after docs/deploy.md, "Install"."""
    for folder in ("", "/optional/volcano", "/optional/kueue", "/optional/sublet", "/optional/koordinator"):
        bare.documented(f"kubectl create -k deploy/crds{folder}")
    bare.documented("kubectl apply -k deploy/")
    for workload in ("deployment/sublet-admission", "deployment/sublet-scheduler", "daemonset/sublet-agent"):
        bare.rolled_out(workload)
    return bare


@pytest.fixture(scope="session")
def lending(site: Site) -> Site:
    """The same with lending switched on everywhere, and room whatever else this machine does."""
    site.make_room()
    if site.fleet().get("mode") != "lend":
        site.documented('--type merge -p \'{"data":{"mode":"lend","canary":""}}\'')
    assert until(lambda: all(site.lent(name) for name in site.node_names), 90), site.told()
    return site
