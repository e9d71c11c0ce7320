"""The guide's commands with real kubectl against a server of its own: install, install again, switch, take away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.tests.apiserver.conftest import Live

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
OPTIONAL = (
    "crds/optional/volcano",
    "crds/optional/kueue",
    "crds/optional/sublet",
    "crds/optional/koordinator",
    "crds/optional/jobset",
)
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server that nobody has touched."""
    server = Live(tmp_path_factory.mktemp("deployed"))
    yield server
    server.stop()


def test_the_guide_from_top_to_bottom(cluster: Live) -> None:
    """Create the definitions, apply the rest; the same again changes nothing and overwrites no definition."""
    for folder in ("crds", *OPTIONAL):
        cluster.kubectl("create", "-k", str(DEPLOY / folder))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
    cluster.kubectl("apply", "-k", str(DEPLOY))
    # It ends with 1 where the server's object would be another afterwards.
    assert cluster.kubectl("diff", "-k", str(DEPLOY)) == ""
    assert "AlreadyExists" in cluster.kubectl("create", "-k", str(DEPLOY / "crds"), code=1)
    patch = '{"data":{"mode":"lend","canary":""}}'
    where = ("-n", "sublet-system", "configmap")
    cluster.kubectl("patch", *where, "sublet-fleet", "--type", "merge", "-p", patch)
    said = cluster.kubectl("get", *where, "sublet-fleet", "-o", "jsonpath={.data.mode}")
    assert said == "lend"
    cluster.kubectl("delete", "-f", str(DEPLOY / "admission" / "webhooks.yaml"))
    cluster.kubectl("delete", "--ignore-not-found", "-k", str(DEPLOY))
    assert "nodemetrics.slo.koordinator.sh" in cluster.kubectl("get", "crd")
