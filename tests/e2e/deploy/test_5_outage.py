"""Admission away: who is stopped, who is not, and that everything goes on by itself once it is back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import ROOT
from tests.e2e.deploy.site import NAMESPACE, Site

DEMO = "outage-demo"
JOB = (ROOT / "examples/guides/batch/job.yaml").read_text().replace("batch-demo", DEMO)
PROFILE = (ROOT / "examples/guides/batch/profile.yaml").read_text()


def scale(site: Site, replicas: int) -> None:
    site.cluster.kubectl("-n", NAMESPACE, "scale", "deployment", "sublet-admission", f"--replicas={replicas}")


@pytest.fixture(scope="module")
def outage(lending: Site) -> Iterator[Site]:
    """No admission program at all, with a batch pod that ran before."""
    kubectl = lending.cluster.kubectl
    kubectl("create", "namespace", DEMO)
    kubectl("label", "namespace", DEMO, "koordinator.sh/enable-colocation=true")
    lending.cluster.apply(PROFILE)
    kubectl("-n", DEMO, "run", "ran-before", "--image=busybox", "--labels=app-type=batch", "--", "sleep", "600")
    kubectl("-n", DEMO, "wait", "pod/ran-before", "--for=condition=Ready", "--timeout=50s")
    scale(lending, 0)
    lending.eventually(lambda: not lending.pods_of("admission"), "admission is gone")
    yield lending
    scale(lending, 2)
    lending.rolled_out("deployment/sublet-admission")
    kubectl("delete", "namespace", DEMO)


def test_ordinary_pods_are_made_as_ever(outage: Site) -> None:
    """Elsewhere, and in the namespaces that are never sent."""
    for namespace in ("default", "kube-system"):
        outage.cluster.kubectl("-n", namespace, "run", "ordinary", "--image=busybox", "--", "sleep", "1")
        outage.cluster.kubectl("-n", namespace, "delete", "pod", "ordinary")


def test_a_pod_of_a_colocation_namespace_is_refused(outage: Site) -> None:
    """It would reserve what it should borrow; the message names the webhook that did not answer."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "refused", "namespace": DEMO},
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
    }
    done = outage.cluster.apply(json.dumps(body), check=False)
    assert done.returncode != 0 and 'failed calling webhook "colocation.pods.sublet.dev"' in done.stderr, done.stderr


def test_what_runs_there_can_be_changed_and_deleted(outage: Site) -> None:
    """Nobody is locked in: annotations, then the end."""
    outage.cluster.kubectl("-n", DEMO, "annotate", "pod", "ran-before", "a=b")
    outage.cluster.kubectl("-n", DEMO, "delete", "pod", "ran-before", "--grace-period=1")


def test_lending_goes_on(outage: Site) -> None:
    assert all(outage.lent(name) for name in outage.node_names)


def test_a_job_that_was_submitted_meanwhile_runs_afterwards(outage: Site) -> None:
    """Its controller tries again by itself, and its pod is a batch pod like any other."""
    outage.cluster.apply(JOB)

    def refused() -> bool:
        events = outage.items("events", "--field-selector", "reason=FailedCreate", namespace=DEMO)
        return any("colocation.pods.sublet.dev" in event["message"] for event in events)

    outage.eventually(refused, "the Job says why it has no pod")
    scale(outage, 2)
    outage.rolled_out("deployment/sublet-admission")
    done = outage.shell(f"kubectl -n {DEMO} wait job/data-processing-job --for=condition=complete --timeout=110s")
    assert done.returncode == 0, outage.cluster.kubectl("-n", DEMO, "get", "events") + outage.told()
    (pod,) = outage.items("pods", "-l", "app-type=batch", namespace=DEMO)
    assert pod["spec"]["priorityClassName"] == "koord-batch"
