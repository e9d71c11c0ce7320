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


def source(spec: Any = None, status: Any = None, annotations: Any = None, **labels: str) -> objects.UntypedObject:
    named = {"kueue.x-k8s.io/queue-name": "a", **labels}
    metadata = objects.Metadata("train", "ns", "uid", resource_version="5", labels=named, annotations=annotations)
    return objects.UntypedObject(metadata, spec or SPEC, status)


def job(spec: Any = None, status: Any = None, annotations: Any = None, **labels: str) -> Any:
    return suspended_job(SuspendedKind.JOB, source(spec, status, annotations, **labels))


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
    given = PodSetInjection("main", 3, {"pool": "x"}, ({"key": "k", "operator": "Exists"},))
    started = merged(SPEC, start_patch(job(), source(), "job-train", (given,)))
    spec = started["template"]["spec"]
    assert started["suspend"] is False and spec["nodeSelector"] == {"zone": "a", "pool": "x"}
    assert spec["tolerations"] == [{"key": "k", "operator": "Exists"}]
    assert started["template"]["metadata"]["annotations"] == {"kueue.x-k8s.io/workload": "job-train"}
    running = job(started)
    assert running.injected and not running.suspended
    stopped = merged(started, stop_patch(source(started)))
    kept = WorkloadObject("ns", "job-train", pod_sets=job().pod_sets)
    again = merged(stopped, restore_patch(job(stopped), source(stopped), kept))
    assert again["template"]["spec"] == TEMPLATE["spec"]
    assert again["template"]["metadata"]["labels"] == {"app": "x"} and not job(again).injected


LESS = {"kueue.x-k8s.io/job-min-parallelism": "2"}
EQUAL = LESS | {"kueue.x-k8s.io/job-completions-equal-parallelism": "true"}


@pytest.mark.parametrize(("annotations", "completions"), [(LESS, 4), (EQUAL, 2)], ids=["as many", "as many as pods"])
def test_started_with_less(annotations: dict[str, str], completions: int) -> None:
    """Of three pods at once two are admitted; afterwards it asks for three again."""
    asked = job(annotations=annotations)
    assert (asked.pod_sets[0].count, asked.pod_sets[0].least) == (3, 2)
    given = (PodSetInjection("main", 2),)
    started = merged(SPEC, start_patch(asked, source(annotations=annotations), "w", given))
    assert (started["parallelism"], started["completions"]) == (2, completions)
    kept, now = WorkloadObject("ns", "w", pod_sets=asked.pod_sets), source(started, annotations=annotations)
    again = merged(started, restore_patch(job(started, annotations=annotations), now, kept))
    assert again["parallelism"] == 3


def test_a_selector_that_says_otherwise() -> None:
    """The flavour is for other nodes than the template."""
    with pytest.raises(ConfigurationFault, match="its nodeSelector has zone: a, and its flavor is b"):
        start_patch(job(), source(), "w", (PodSetInjection("main", 3, {"zone": "b"}),))


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
    owner = [objects.OwnerReference("batch/v1", "Job", "train", "uid", True)]
    gone = workload(
        objects.Workload(
            objects.Metadata("w", "ns", owner_references=owner),
            made["spec"],
            merged(raw, status_patch(raw, transitions.released(status, 1060.0))),
        )
    )
    assert gone.status.admission is None and gone.status.past_seconds == 60 and gone.waiting


def read(spec: Any = None, status: Any = None, **annotations: str) -> WorkloadObject:
    notes = {key.replace("__", "-"): text for key, text in annotations.items()}
    return workload(objects.Workload(objects.Metadata("w", "ns", annotations=notes), spec, status))


def test_the_words_of_v1beta2() -> None:
    """Its reference to a class, and its spelling."""
    told = read({"priorityClassRef": {"name": "high"}}, {"accumulatedPastExecutionTimeSeconds": 7})
    assert (told.priority_class, told.status.past_seconds, told.unreadable) == ("high", 7, "")


def test_pod_sets_come_back_as_they_were_written() -> None:
    """With the least number of pods, and the topology that its template asks for."""
    template = {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}, "spec": {}}
    asked = job({**SPEC, "template": template}, annotations=LESS)
    assert (asked.pod_sets[0].required, asked.pod_sets[0].least) == ("rack", 2)
    spec = spec_of(asked, 0, "", "")
    assert spec["podSets"][0]["topologyRequest"] == {"required": "rack"} and spec["podSets"][0]["minCount"] == 2
    assert read(spec).pod_sets == asked.pod_sets
    all_of_them = job(annotations={"kueue.x-k8s.io/job-min-parallelism": "3"})
    assert "minCount" not in spec_of(all_of_them, 0, "", "")["podSets"][0]


def test_more_pods_than_a_job_may_have() -> None:
    """Of a Job and of a Workload that somebody writes: nothing is made for any of them."""
    told = job({**SPEC, "parallelism": 1 << 30, "completions": None})
    assert told.problem == "Job ns/train: has 1073741824 pods at once (write at most 10000)"
    found = read({"podSets": [{"name": "main", "count": 10_001, "template": {}}]})
    assert "spec.podSets: has 10001 pods" in found.unreadable and not found.waiting


def test_a_least_number_that_is_none() -> None:
    """It is not queued, and the field is named."""
    told = job(annotations={"kueue.x-k8s.io/job-min-parallelism": "some"}).problem
    assert "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: is 'some' (write a whole number" in told


@pytest.mark.parametrize(
    ("levels", "seats"),
    [(["kubernetes.io/hostname"], {"n0": 3, "n1": 1}), (["rack", "kubernetes.io/hostname"], {"n0": 3}), (["rack"], {})],
    ids=["by host", "below a rack", "wider than a node"],
)
def test_seats(levels: list[str], seats: dict[str, int]) -> None:
    """Of a topology the nodes."""
    domains: list[Any] = [
        {"values": ["n0"], "count": 2},
        {"values": ["n1"], "count": 1},
        {"values": ["n0"], "count": 1},
    ]
    if len(levels) > 1:
        domains = [{"values": ["r1", "n0"], "count": 3}]
    own = {"name": "main", "count": 4, "topologyAssignment": {"levels": levels, "domains": domains}}
    found = read({}, {"admission": {"clusterQueue": "team", "podSetAssignments": [own]}}).status.admission
    assert found is not None and found.assignments[0].seats == seats


@pytest.mark.parametrize(
    ("text", "boost"),
    [("10", 10), ("-7", -7), ("", 0), ("much", 0), ("1.5", 0), ("9999999999", 0), ("-", 0), ("²", 0)],
)
def test_boost(text: str, boost: int) -> None:
    """What is no whole number of 32 bits counts as none."""
    found = workload(objects.Workload(objects.Metadata("w", "ns", annotations={"kueue.x-k8s.io/priority-boost": text})))
    assert (found.boost, found.counts_as) == (boost, boost)


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "0", "2147483648", "\u0663", ""])
def test_a_least_number_that_cannot_be_read(text: str) -> None:
    """Whoever may write jobs writes any text."""
    labels = {"kueue.x-k8s.io/queue-name": "a"}
    told = {"kueue.x-k8s.io/job-min-parallelism": text}
    metadata = objects.Metadata("train", "ns", "uid", labels=labels, annotations=told)
    found = suspended_job(SuspendedKind.JOB, objects.UntypedObject(metadata, SPEC, None))
    assert "write a whole number of 1 or more" in found.problem
