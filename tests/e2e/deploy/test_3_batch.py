"""The batch quick start in full, unchanged, on this installation: by profile, by hand, and a pod that does neither."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import ROOT
from tests.e2e.deploy.site import BATCH, Site

GUIDE = ROOT / "examples" / "guides" / "batch"
DEMO = "batch-demo"


@pytest.fixture(scope="module")
def demo(lending: Site) -> Iterator[Site]:
    """The guide's namespace, labelled (S26), with its profile (S27)."""
    kubectl = lending.cluster.kubectl
    kubectl("create", "namespace", DEMO)
    kubectl("label", "namespace", DEMO, "koordinator.sh/enable-colocation=true")
    kubectl("apply", "-f", str(GUIDE / "profile.yaml"))
    yield lending
    kubectl("delete", "namespace", DEMO)


def finished(site: Site, file: str, namespace: str = DEMO) -> tuple[dict[str, Any], str]:
    """Apply a Job of the guide and wait for its end; its pod and what it printed."""
    kubectl = site.cluster.kubectl
    manifest = (GUIDE / file).read_text().replace(DEMO, namespace)
    job = site.cluster.apply(manifest).stdout.split()[0]
    done = site.shell(f"kubectl wait -n {namespace} {job} --for=condition=complete --timeout=90s")
    assert done.returncode == 0, done.stderr + kubectl("-n", namespace, "get", "events") + site.told()
    (pod,) = site.items("pods", "-l", f"job-name={job.partition('/')[2]}", namespace=namespace)
    return pod, kubectl("logs", "-n", namespace, job)


def resources(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod["spec"]["containers"][0]["resources"]
    return found


def scheduled_by(site: Site, pod: dict[str, Any]) -> str:
    """Who says that it placed the pod."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    events = site.items(
        "events", "--field-selector", f"involvedObject.name={name},reason=Scheduled", namespace=namespace
    )
    return str(events[0].get("reportingComponent") or events[0]["source"]["component"])


def test_an_unchanged_job_becomes_batch(demo: Site) -> None:
    """S27, S28: the Job stays as it was written, its pod is batch work on batch resources, and completes."""
    pod, printed = finished(demo, "job.yaml")
    assert resources(pod)["requests"] == resources(pod)["limits"] == dict(zip(BATCH, ("2k", "4Gi"), strict=True))
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    assert (labels["koordinator.sh/qosClass"], labels["koordinator.sh/mutated"]) == ("BE", "true")
    assert (spec["priorityClassName"], spec["priority"]) == ("koord-batch", 5000)
    assert (spec["schedulerName"], scheduled_by(demo, pod)) == ("koord-scheduler", "koord-scheduler")
    job = demo.get("job", "data-processing-job", namespace=DEMO)
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
    assert printed.splitlines()[-1] == "processing is done"


def test_by_hand(demo: Site) -> None:
    """S29: a pod that says all of it itself is left as it is."""
    pod, printed = finished(demo, "manual.yaml")
    assert resources(pod)["requests"] == dict(zip(BATCH, ("1k", "2Gi"), strict=True))
    assert "koordinator.sh/mutated" not in pod["metadata"]["labels"]
    assert (scheduled_by(demo, pod), printed) == ("koord-scheduler", "hello from a batch job\n")


def test_without_any_of_it_a_job_is_ordinary(demo: Site) -> None:
    """S37: the very same Job in a namespace without the label, for the cluster's own scheduler."""
    small = (GUIDE / "job.yaml").read_text().replace(DEMO, "default").replace('cpu: "2"', "cpu: 100m")
    demo.cluster.apply(small.replace("4Gi", "64Mi"))
    kubectl = demo.cluster.kubectl
    try:
        kubectl("wait", "job/data-processing-job", "--for=condition=complete", "--timeout=50s")
        (pod,) = demo.items("pods", "-l", "app-type=batch", namespace="default")
    finally:
        kubectl("delete", "job", "data-processing-job")
    assert resources(pod)["requests"] == {"cpu": "100m", "memory": "64Mi"}
    assert "koordinator.sh/qosClass" not in pod["metadata"]["labels"]
    assert pod["spec"]["schedulerName"] == scheduled_by(demo, pod) == "default-scheduler"


REFUSED = {
    "batch resources, but priority of production": (
        {"priorityClassName": "koord-prod"},
        {"koordinator.sh/qosClass": "BE"},
    ),
}


@pytest.mark.parametrize(("spec", "labels"), REFUSED.values(), ids=REFUSED)
def test_what_contradicts_itself_is_refused(demo: Site, spec: dict[str, str], labels: dict[str, str]) -> None:
    """One sentence, before anything runs."""
    amounts = dict.fromkeys(BATCH, "1000")
    container = {"name": "c", "image": "busybox", "resources": {"requests": amounts, "limits": amounts}}
    metadata = {"name": "contradiction", "namespace": DEMO, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "containers": [container]}}
    done = demo.cluster.apply(json.dumps(body), check=False)
    assert done.returncode != 0 and 'admission webhook "colocation.pods.sublet.dev" denied the request' in done.stderr
