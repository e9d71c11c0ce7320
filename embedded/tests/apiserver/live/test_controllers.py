"""Controllers seen through kubectl, against a server of its own process."""

import json
import time

import pytest

pytestmark = pytest.mark.e2e


def until(check, seconds=10.0):
    """Whether it comes true in time; a server reacts within milliseconds."""
    deadline = time.monotonic() + seconds
    while not (found := check()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def read(live, *arguments):
    return json.loads(live.kubectl("get", *arguments, "-o", "json"))


def test_a_cron_job_and_a_job_from_it(live):
    """`create cronjob`, `get cj`, `create job --from`: the last two carry the whole template in protobuf."""
    live.kubectl("create", "cronjob", "nightly", "--image=busybox", "--schedule=@daily", "--", "date")
    listed = live.kubectl("get", "cj", "nightly").splitlines()
    assert listed[0].split("  ") and listed[0].replace("LAST SCHEDULE", "LAST").split() == [
        *("NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST", "AGE"),
    ]
    assert listed[1].split()[:6] == ["nightly", "@daily", "<none>", "False", "0", "<none>"]
    live.kubectl("create", "job", "--from=cronjob/nightly", "by-hand")
    made, template = read(live, "job", "by-hand"), read(live, "cj", "nightly")["spec"]["jobTemplate"]
    assert made["spec"]["template"]["spec"] == template["spec"]["template"]["spec"]
    assert made["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    assert until(lambda: read(live, "pods", "-l", "job-name=by-hand")["items"])
    live.kubectl("delete", "cj", "nightly")
    assert until(lambda: not read(live, "pods", "-l", "job-name=by-hand")["items"])


def test_a_wrong_schedule_is_one_clear_line(live):
    """The field, the value and what is wrong with it."""
    said = live.kubectl("create", "cronjob", "bad", "--image=b", "--schedule=often", code=1)
    assert 'spec.schedule: Invalid value: "often": expected exactly 5 fields, found 1: [often]' in said


def test_cordon_and_uncordon(live):
    """The taint comes and goes by itself."""
    ready = [{"type": "Ready", "status": "True"}]
    live.kubectl(
        "create",
        "-f",
        "-",
        stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1"}, "status": {"conditions": ready}},
    )
    live.kubectl("cordon", "c1")
    taints = until(lambda: read(live, "node", "c1")["spec"].get("taints"))
    assert [(taint["key"], taint["effect"]) for taint in taints] == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    live.kubectl("uncordon", "c1")
    assert until(lambda: read(live, "node", "c1")["spec"] == {})
    live.kubectl("delete", "node", "c1")


def test_describe_tells_why_a_namespace_hangs(live):
    """Conditions in words."""
    live.kubectl("create", "ns", "hangs")
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["example.com/hold"]}}
    live.kubectl("create", "-n", "hangs", "-f", "-", stdin=held)
    live.kubectl("delete", "ns", "hangs", "--wait=false")
    assert until(lambda: "example.com/hold in 1 resource instances" in live.kubectl("describe", "ns", "hangs"))
    live.kubectl("patch", "-n", "hangs", "cm", "x", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    live.kubectl("wait", "--for=delete", "ns/hangs", "--timeout=10s")


def test_every_namespace_knows_the_authority(start_live, tmp_path):
    """ConfigMap kube-root-ca.crt, where the server is told of it."""
    pem = tmp_path / "root.pem"
    pem.write_text("PEM\n")
    server = start_live("--root-ca", str(pem))
    assert until(lambda: "kube-root-ca.crt" in server.kubectl("get", "cm"))
    assert read(server, "cm", "kube-root-ca.crt")["data"] == {"ca.crt": "PEM\n"}
