"""A server process with a state directory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"k": "v"}}


def test_a_killed_server_comes_back_as_it_was(start_live, tmp_path):
    """kubectl finds what it was told is there; a second server on the same directory is refused."""
    state = ("--state-dir", str(tmp_path / "state"))
    first = start_live(*state)
    first.kubectl("create", "-f", "-", stdin=CONFIG_MAP)
    made = json.loads(first.kubectl("get", "configmap", "kept", "-o", "json"))
    refused = subprocess.run(first.command(*state), capture_output=True, text=True, timeout=30, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert f"in use by process {first.process.pid}" in refused.stderr
    first.process.kill()
    first.process.wait()

    second = start_live(*state)
    found = json.loads(second.kubectl("get", "configmap", "kept", "-o", "json"))
    assert found == made
    second.kubectl("label", "configmap", "kept", "more=yes")
    changed = json.loads(second.kubectl("get", "configmap", "kept", "-o", "json"))
    assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


def test_tokens_outlive_a_restart(start_live, tmp_path):
    """As do the accounts they are of; a key that cannot be used is one line."""
    state = ("--state-dir", str(tmp_path / "state"))
    first = start_live(*state)
    first.kubectl("create", "serviceaccount", "robot")
    token = first.kubectl("create", "token", "robot").strip()
    first.stop()
    second = start_live(*state)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = json.loads(second.kubectl("create", "-f", "-", "-o", "json", stdin=review))
    assert answer["status"]["user"]["username"] == "system:serviceaccount:default:robot"
    second.stop()
    (tmp_path / "state" / "service-account.key").write_text("nothing")
    done = subprocess.run(second.command(*state), capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: {tmp_path}/state/service-account.key: cannot be used")


JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "goes-on"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
}


def test_controllers_go_on_after_a_restart(start_live, tmp_path):
    """A job of an earlier run has its pod still, and is suspended when asked."""
    state = ("--state-dir", str(tmp_path / "state"))
    first = start_live(*state)
    first.kubectl("create", "-f", "-", stdin=JOB)
    first.kubectl("wait", "--for=jsonpath={.status.active}=1", "--timeout=20s", "job/goes-on")
    before = first.kubectl("get", "pods", "-o", "name")
    first.process.kill()
    first.process.wait()
    second = start_live(*state)
    assert before and second.kubectl("get", "pods", "-o", "name") == before
    second.kubectl("patch", "job", "goes-on", "-p", '{"spec":{"suspend":true}}')
    second.kubectl("wait", "--for=condition=Suspended", "--timeout=20s", "job/goes-on")
    second.kubectl("wait", "--for=delete", "--timeout=20s", before.strip())


def no_database(state, elsewhere):
    (state / "state.sqlite").write_text("no database at all, but a text that somebody keeps here" * 20)
    return "state.sqlite"


def a_link(name):
    def make(state, elsewhere):
        (state / name).symlink_to(elsewhere)
        return name

    return make


UNUSABLE = {
    "no database": (no_database, "--state-dir "),
    "the lock a link": (a_link("lock"), "--state-dir "),
    "the database a link": (a_link("state.sqlite"), "--state-dir "),
    "the key a link": (a_link("service-account.key"), ""),
}


@pytest.mark.parametrize(("make", "flag"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_directory_that_cannot_be_used_is_one_line(credentials, tmp_path, make, flag):
    """No traceback, and the exit code of a wrong setting; a file that a link leads to stays as it is."""
    state, elsewhere = tmp_path / "state", tmp_path / "precious"
    state.mkdir()
    elsewhere.write_text("precious")
    name = make(state, elsewhere)
    command = [sys.executable, "-m", "embedded.apiserver", "--listen", "127.0.0.1:0", "--state-dir", str(state)]
    files = ("--tls-cert", "tls.crt", "--tls-key", "tls.key", "--token-file", "tokens")
    command += [*(part if part.startswith("--") else str(credentials / part) for part in files)]
    command += ["--ready-file", str(tmp_path / "ready")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: {flag}{state}")
    assert name in done.stderr
    assert elsewhere.read_text() == "precious"


def test_the_state_directory_is_left_clean(start_live, tmp_path):
    """An orderly stop leaves one database, the lock file, and the key of the service account tokens."""
    server = start_live("--state-dir", str(tmp_path / "state"))
    assert server.stop() == 0
    left = {path.name for path in Path(tmp_path / "state").iterdir()}
    assert left == {"state.sqlite", "lock", "service-account.key"}


def test_a_port_that_is_taken(start_live):
    """One line that says what to do."""
    first = start_live()
    listen = ("--listen", first.address.removeprefix("https://"))
    refused = subprocess.run(first.command(*listen), capture_output=True, text=True, timeout=30, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    told = f"{' '.join(listen)}: Address already in use (another port may be free; 0 is any free one)"
    assert told in refused.stderr
