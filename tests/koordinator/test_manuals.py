"""Every document of Koordinator's manuals is accepted and done, accepted with a warning, or refused with a sentence."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
import pytest
import yaml
from admission_builders import CLASSES, Cluster
from manuals import ROOT, Manual, Verdict, installed, manuals

from admission.core.mutate import MutationPolicy
from admission.core.validate import PodRules
from admission.reviewer import Path, Reviewer, read
from embedded.apiserver.apimachinery.json_patch import json_patch
from kube.dialects.coverage.of_node import in_node
from kube.dialects.coverage.rows import Support, Surface
from kube.dialects.coverage.table import ROWS

MANUALS = manuals()
LONGEST = 256


def answered(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """What the admission program says of an object that is created."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": document["kind"]}
    asked = {"uid": "u", "kind": kind, "operation": "CREATE", "object": document}
    asked["namespace"] = document["metadata"].get("namespace", "")
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    reviewer = Reviewer(Cluster(), MutationPolicy(), PodRules(), draw=lambda: 50)
    answer = reviewer.answer(path, read(msgspec.json.encode(review)))
    found: dict[str, Any] = msgspec.json.decode(answer.encoded())["response"]
    return found


def created(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod through both webhooks, its priority filled in before as Kubernetes does."""
    named = CLASSES.get(pod["spec"].get("priorityClassName", ""))
    pod = {**pod, "spec": {**pod["spec"], **({"priority": named.value} if named else {})}}
    first = answered(Path.MUTATE_POD, pod)
    if not first["allowed"]:
        return first
    patch = msgspec.json.decode(b64decode(first["patch"])) if "patch" in first else []
    second = answered(Path.VALIDATE_POD, json_patch(pod, patch))
    return {**second, "warnings": [*first.get("warnings", ()), *second.get("warnings", ())]}


def sent(document: dict[str, Any]) -> bool:
    """Whether a webhook's rules name the kind, as `installed` looks for definitions."""
    hooks = list(yaml.safe_load_all((ROOT / "deploy/admission/webhooks.yaml").read_text()))[1]["webhooks"]
    rules = [rule for hook in hooks for rule in hook["rules"]]
    group, kind = document["apiVersion"].rpartition("/")[0], document["kind"].lower()
    plurals = {f"{kind}s", f"{kind}es"}
    return any(group in rule["apiGroups"] and plurals & {*rule["resources"]} for rule in rules)


def said(document: dict[str, Any]) -> tuple[bool, list[str]]:
    """Whether it is let in, and what is said."""
    if not installed(document):
        return False, [f'no matches for kind "{document["kind"]}" in version "{document["apiVersion"]}"']
    if document["kind"] == "Node":
        meta = document["metadata"]
        return True, [asked.row.name for asked in in_node(meta.get("labels", {}), meta.get("annotations", {}))]
    if document["kind"] == "Pod":
        response = created(document)
    else:
        response = answered(Path.VALIDATE_OBJECT, document) if sent(document) else {"allowed": True}
    if not response["allowed"]:
        return False, [response["status"]["message"]]
    return True, response.get("warnings", [])


@pytest.mark.parametrize("manual", MANUALS.values(), ids=MANUALS)
def test_what_becomes_of_a_document(manual: Manual) -> None:
    """Nothing that is accepted and not acted on is silent."""
    let_in, told = said(manual.document)
    assert let_in is (manual.verdict is not Verdict.REFUSED), told
    assert bool(told) is (manual.verdict is not Verdict.DONE), told
    assert [words for words in manual.words if not any(words in each for each in told)] == [], told
    assert bool(manual.words) is (manual.verdict is not Verdict.DONE)
    assert all(len(each) <= LONGEST for each in told) or not let_in


def test_the_documents_cover_what_is_not_honoured() -> None:
    """Each field that asks for something nobody does, of settings, pods and profiles, stands in a document."""
    told = "\n".join(line for each in MANUALS.values() for line in said(each.document)[1])
    surfaces = (Surface.SETTINGS, Surface.POD_ANNOTATION, Surface.POD_LABEL, Surface.PROFILE)
    missing = {
        row.name
        for row in ROWS
        if row.surface in surfaces and row.support is not Support.HONOURED and row.consequence not in told
    }
    assert missing <= RARE


RARE = {
    "colocation-config.cpuCalculatePolicy: request",
    "colocation-config.metricMemoryCollectPolicy: usageWithHotPageCache",
    "colocation-config.extensions",
    "extensions",
    "host-application-config.applications[].strategy",
    "resource-qos-config.cgroupRoot.cpuQOS",
    "resource-qos-config.cgroupRoot.memoryQOS",
    "resource-qos-config.cgroupRoot.networkQOS",
    "resource-qos-config.cgroupRoot.resctrlQOS",
    "resource-qos-config.*Class.cpuQOS.coreExpeller",
    "system-config.memcgReapBackGround",
    "system-config.schedGroupIdentityEnabled",
    "system-config.schedIdleSaverWmark",
    "system-config.schedFeatures",
    "system-config.pageCacheLimitEnabled",
    "koordinator.sh/cgroup-override*",
    "koordinator.sh/sandbox-runtime-class",
    "scheduling.koordinator.sh/operating-mode: Reservation",
    "scheduling.koordinator.sh/sandbox-*",
    "scheduling.koordinator.sh/schedule-admission-*",
    "scheduling.koordinator.sh/scheduler-name",
    "scheduling.koordinator.sh/reservation-ignored",
    "scheduling.koordinator.sh/resource-status",
    "scheduling.koordinator.sh/device-allocated",
    "scheduling.koordinator.sh/eviction-cost",
    "scheduling.koordinator.sh/soft-eviction",
}
"""In no manual's example: the table's own test has a minimal document for each."""


def test_each_verdict_is_met() -> None:
    """The folder holds many documents of each kind."""
    counts = {verdict: sum(each.verdict is verdict for each in MANUALS.values()) for verdict in Verdict}
    assert min(counts.values()) >= 15 and sum(counts.values()) >= 95, counts
