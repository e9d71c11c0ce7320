"""S3 over HTTP: what holds in the memory and on the disk holds in a bucket, past one page of a listing, too."""

from __future__ import annotations

import io
import logging
import re
import signal
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest
from sdk_cases import JOB, ONCE, Clock, Stopped, settings
from training_runs import TrainingRun, whole

from sublet_sdk import manifest
from sublet_sdk.checkpoints import Checkpoints
from sublet_sdk.faults import StorageFault
from sublet_sdk.manifest import Checkpoint, StoredFile
from sublet_sdk.storage import opened

WHY = "needs the packages of extra `test` of sdk/pyproject.toml, which `make test-sdk` installs"
server = pytest.importorskip("moto.server", reason=WHY)
s3fs = pytest.importorskip("s3fs", reason=WHY)
FILES = {"model.npz": b"weights", "optimizer/state": b"moments"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[dict[str, str]]:
    """The environment of a client of the server."""
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    running.stop()


@pytest.fixture
def bucket(endpoint: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Its client, and a bucket of the test's own by name `bucket`."""
    for name, value in endpoint.items():
        monkeypatch.setenv(name, value)
    client = s3fs.S3FileSystem()
    client.mkdir("bucket")
    yield client
    client.rm("bucket", recursive=True)


def store(most: int = 0) -> Checkpoints:
    return Checkpoints(settings(most), opened("s3://bucket/some/path/", ONCE), Clock())


def test_save_list_latest_load_delete(bucket: Any) -> None:
    one = store()
    first, second = one.save(FILES, step=1), one.save(FILES, step=2, epoch=3, metadata={"loss": 0.5})
    keys = sorted(bucket.find("bucket"))
    assert keys[0] == f"bucket/some/path/{JOB.text}/{first.id}/manifest.json" and len(keys) == 6
    other = store()
    assert other.latest() == second and [each.step for each in other.list().checkpoints] == [2, 1]
    loaded = other.load()
    assert loaded is not None and (loaded.checkpoint, dict(loaded.files)) == (second, FILES)
    other.delete(second.id)
    assert one.latest() == first and store().list().checkpoints == (first,)


def test_the_newest_are_kept_and_another_writers_are_seen(bucket: Any) -> None:
    """A client keeps listings: what others wrote since is listed all the same."""
    one, other = store(most=2), store()
    assert one.latest() is None
    for step in (1, 2):
        other.save(FILES, step=step)
    assert one.latest() is not None
    one.save(FILES, step=3)
    assert [each.step for each in other.list().checkpoints] == [3, 2]


def test_the_list_goes_past_a_thousand_keys(bucket: Any) -> None:
    """A page of S3 has 1,000; each of ours has as many checkpoints as are asked for."""
    count = 1050
    made = {}
    for number in range(count):
        each = manifest.new_id(1_000_000_000_000_000_000 + number, "00000000")
        saved = Checkpoint(each, JOB.text, number, 0, 1, 1.0, 1.0, {"a": StoredFile(1, "")})
        made[f"bucket/some/path/{JOB.text}/{each}/a"] = b"a"
        made[f"bucket/some/path/{JOB.text}/{each}/manifest.json"] = manifest.encoded(saved)
    bucket.pipe(made)
    one, steps, after = store(), [], ""
    while True:
        page = one.list(after, most=600)
        steps += [each.step for each in page.checkpoints]
        if not page.next:
            break
        after = page.next
    assert steps == list(range(count))[::-1]


def test_a_partial_upload_is_invisible(bucket: Any) -> None:
    """A process that ends in the midst of a file of several parts leaves the one before the latest."""

    class Ends(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 55 << 20:
                raise Stopped
            return super().read(size)

    one = store()
    before = one.save(FILES, step=1)
    with pytest.raises(Stopped):
        opened("s3://bucket/some/path", ONCE).write(
            f"{JOB.text}/{manifest.new_id(one.begin(), 'ffffffff')}/model", lambda: _stream(Ends(bytes(60 << 20)))
        )
    assert store().latest() == before and store().list().checkpoints == (before,)
    assert store(most=1).save(FILES, step=2) == store().latest()


def _stream(given: io.BytesIO) -> BinaryIO:
    return given


def test_a_corrupt_object_falls_back(bucket: Any, caplog: pytest.LogCaptureFixture) -> None:
    one = store()
    first, second = one.save(FILES, step=1), one.save(FILES, step=2)
    bucket.pipe_file(f"bucket/some/path/{JOB.text}/{second.id}/model.npz", b"WEIGHTS")
    with caplog.at_level(logging.WARNING):
        loaded = one.load()
    assert loaded is not None and loaded.checkpoint == first and "has SHA-256" in caplog.text


def test_a_bucket_that_is_absent_is_no_empty_one_to_write_to(bucket: Any) -> None:
    absent = Checkpoints(settings(), opened("s3://no-such-bucket/x", ONCE), Clock())
    with pytest.raises(StorageFault, match="no such folder, bucket or source"):
        absent.save(FILES, step=1)


def test_an_endpoint_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, endpoint: dict[str, str]) -> None:
    """Neither latest nor load say that there is nothing."""
    for name, value in {**endpoint, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    silent = Checkpoints(settings(), opened("s3://bucket/x", ONCE), Clock())
    try:
        for call in (silent.latest, silent.load):
            with pytest.raises(StorageFault, match=r"list bucket/x/ml/bert: .*attempt 1 of 1"):
                call()
    finally:
        s3fs.S3FileSystem.clear_instance_cache()


def test_training_is_interrupted_and_goes_on(bucket: Any) -> None:
    """The example by S3 ends with the loss of a run that was not interrupted."""

    def told(name: str) -> dict[str, str]:
        return {
            "SUBLET_CHECKPOINT_URL": "s3://bucket/runs",
            "SUBLET_CHECKPOINT_INTERVAL_SECONDS": "0.5",
            "SUBLET_CHECKPOINT_MAX": "2",
            "SUBLET_JOB_NAMESPACE": "ml",
            "SUBLET_JOB_NAME": name,
        }

    with TrainingRun(told("stopped"), step_seconds=0.2) as run:
        run.wait_for("step 10")
        run.process.send_signal(signal.SIGTERM)
        status, rest = run.end()
    assert status == 143, rest
    stopped = int(re.findall(r"stops after step (\d+)", rest)[0])
    assert whole(told("stopped")) == (stopped, whole(told("whole"))[1])
