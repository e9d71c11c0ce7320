"""Jobs that wait whole as their objects say, and the patches that start, stop and restore them."""

from __future__ import annotations

from typing import Any

import pytest

from kube import objects
from kube.dialects.suspended.reading import restore_patch, start_patch, stop_patch, suspended_job
from kube.dialects.suspended.workload import body, spec_of, status_patch, workload
from kube.mergepatch import merge_patch
from model.fault import ConfigurationFault
from model.suspended import transitions
from model.suspended.job import JobEnd, PodSetInjection, SuspendedKind
from model.suspended.workload import PodSetAssignment, WorkloadAdmission, WorkloadObject

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"nodeSelector": {"zone": "a"}, "containers": [{"name": "main"}]},
}
SPEC: dict[str, Any] = {"parallelism": 3, "completions": 4, "suspend": True, "template": TEMPLATE}


def job(spec: Any = None, status: Any = None, **labels: str) -> Any:
    named = {"kueue.x-k8s.io/queue-name": "a", **labels}
    metadata = objects.Metadata("train", "ns", "uid", resource_version="5", labels=named)
    return suspended_job(SuspendedKind.JOB, objects.UntypedObject(metadata, spec or SPEC, status))


def merged(before: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    found = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def test_read() -> None:
    """As many pods as run at once; what it will not make again is reclaimable."""
    found = job(status={"active": 1, "ready": 1, "succeeded": 2, "startTime": "2026-01-01T00:00:00Z"})
    assert (found.count, found.queue, found.suspended, found.started) == (3, "a", True, True)
    assert (found.pods, found.ready, found.reclaimable) == (1, 3, {"main": 1})
    done = {"conditions": [{"type": "Complete", "status": "True", "message": "well"}]}
    assert job(status=done).end == JobEnd(True, "well")


@pytest.mark.parametrize(
    ("spec", "labels", "words"),
    [
        ({**SPEC, "parallelism": "many"}, {}, "Job ns/train: spec.parallelism"),
        (SPEC, {"kueue.x-k8s.io/max-exec-time-seconds": "soon"}, "is 'soon' (write a whole number of seconds"),
    ],
    ids=["parallelism", "longest time"],
)
def test_unreadable(spec: Any, labels: dict[str, str], words: str) -> None:
    """Told by object and field."""
    assert words in job(spec, **labels).problem


def test_started_and_restored() -> None:
    """Where its admission says; afterwards every byte of its template is as it was."""
    given = PodSetInjection("main", {"pool": "x"}, ({"key": "k", "operator": "Exists"},))
    started = merged(SPEC, start_patch(job(), SPEC, "job-train", (given,)))
    spec = started["template"]["spec"]
    assert started["suspend"] is False and spec["nodeSelector"] == {"zone": "a", "pool": "x"}
    assert spec["tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert started["template"]["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "job-train"}
    running = job(started)
    assert running.injected and not running.suspended
    stopped = merged(started, stop_patch(running, started))
    kept = WorkloadObject("ns", "job-train", pod_sets=job().pod_sets)
    again = merged(stopped, restore_patch(job(stopped), stopped, kept))
    assert again["template"]["spec"] == TEMPLATE["spec"]
    assert again["template"]["metadata"]["labels"] == {"app": "x"} and not job(again).injected


def test_a_selector_that_says_otherwise() -> None:
    """The flavour is for other nodes than the template."""
    with pytest.raises(ConfigurationFault, match="its nodeSelector has zone: a, and its flavor is b"):
        start_patch(job(), SPEC, "w", (PodSetInjection("main", {"zone": "b"}),))


def test_a_workload_comes_back_as_it_was_written() -> None:
    """Spec and status, with conditions that nobody knows here."""
    made = body(job(), {"uid": "uid", "controller": True, "name": "train", "kind": "Job"}, spec_of(job(), 7, "c", "s"))
    known = {"conditions": [{"type": "Other", "status": "True"}]}
    before = workload(objects.Workload(objects.Metadata("w", "ns"), made["spec"], known))
    assert (before.queue, before.priority, before.count, before.pod_sets) == ("a", 7, 3, job().pod_sets)
    admission = WorkloadAdmission("team", (PodSetAssignment("main", 3, {"cpu": "f"}, {"cpu": "3"}),))
    status = transitions.admitted(before.status, admission, 1000.0)
    raw = merged(known, status_patch(known, status))
    assert raw["conditions"][0] == {"type": "Other", "status": "True"}
    after = workload(objects.Workload(objects.Metadata("w", "ns"), made["spec"], raw))
    assert after.status == status and after.status.admitted
    assert merge_patch(raw, raw) == status_patch(raw, status) == {}
    gone = workload(
        objects.Workload(
            objects.Metadata("w", "ns"),
            made["spec"],
            merged(raw, status_patch(raw, transitions.released(status, 1060.0))),
        )
    )
    assert gone.status.admission is None and gone.status.past_seconds == 60 and gone.waiting
