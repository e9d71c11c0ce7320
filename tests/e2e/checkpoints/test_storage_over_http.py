"""The same with checkpoints in a bucket of S3, over HTTP."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.checkpoints.conftest import FIRST, SECOND, WORKERS, Training
from tests.e2e.conftest import ROOT, RunningCluster, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PYTHON = ROOT / ".venv/sdk/bin/python"
SERVES = (
    "import sys\nfrom moto.server import ThreadedMotoServer\n"
    "running = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)\nrunning.start()\n"
    "print('http://%s:%d' % running.get_host_and_port(), flush=True)\nsys.stdin.read()\n"
)
"""Ends with whoever started it."""
MAKES = "import s3fs; s3fs.S3FileSystem().mkdir('bucket')"
LISTS = (
    "import json, s3fs; files = s3fs.S3FileSystem(); found = sorted(files.glob('bucket/runs/default/model/*/manifest.json'))\n"
    "print(json.dumps([json.loads(files.cat(each))['step'] for each in found]))"
)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[dict[str, str]]:
    """The environment of a client of the server, which has a bucket."""
    if not PYTHON.exists():
        pytest.skip("needs the environment that `make test-sdk` makes")
    server = subprocess.Popen([str(PYTHON), "-c", SERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdin is not None
    variables = {
        "AWS_ENDPOINT_URL": server.stdout.readline().strip(),
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    python(MAKES, variables)
    yield variables
    server.stdin.close()
    server.wait(20)


def python(script: str, variables: dict[str, str]) -> str:
    done = subprocess.run(
        [str(PYTHON), "-c", script],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Bucket(Training):
    """Trains with what the bucket needs."""

    @property
    def url(self) -> str:
        return "s3://bucket/runs"


@pytest.fixture
def bucket(cluster: RunningCluster, tmp_path: Path, endpoint: dict[str, str]) -> Bucket:
    made = Bucket(cluster, tmp_path, str(PYTHON))
    made.variables |= endpoint
    return made


def test_it_goes_on_from_the_bucket_on_the_other_node(bucket: Bucket, endpoint: dict[str, str]) -> None:
    bucket.gang("fills", SECOND, size=4)
    bucket.all_run("fills", 4)
    job = bucket.train("model", grace="60s")
    bucket.all_run("model", WORKERS)
    bucket.reaches_step("model", 20)
    before = bucket.uids("model")
    bucket.gang("urgent", FIRST, size=4)
    bucket.all_run("urgent", 4)
    (saved,) = json.loads(python(LISTS, endpoint))
    assert 20 <= saved < 300
    bucket.hurry()
    bucket.clear("fills")
    assert until(lambda: bucket.run_anew("model", WORKERS, before), 60.0), bucket.pods("model")
    assert bucket.nodes("model") == {SECOND}
    bucket.reaches(job, "Succeeded", 150.0)
    assert bucket.begun_after("model") == [saved] * WORKERS
    assert bucket.losses("model") == [bucket.uninterrupted_loss()] * WORKERS
    bucket.clear("urgent", "model")
