"""What is accepted and not acted upon is told, in one line of a table each, and no line is forgotten anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.dialects.unserved import KINDS, STORED_ONLY, held_for_ever, in_metadata, kind_sentence
from kube.objects import Metadata

DEPLOY = Path(__file__).parent.parent.parent.parent / "deploy"
WORDS: dict[str, tuple[dict[str, Any], str]] = {
    "a LocalQueue": ({"labels": {"kueue.x-k8s.io/queue-name": "team-a"}}, "no LocalQueue has that name"),
    "a LocalQueue, of old": (
        {"annotations": {"kueue.x-k8s.io/queue-name": "team-a"}},
        "no LocalQueue has that name",
    ),
    "a WorkloadPriorityClass": ({"labels": {"kueue.x-k8s.io/priority-class": "team-a"}}, "spec.priorityClassName"),
    "a PodGroup of scheduler-plugins": (
        {"labels": {"scheduling.x-k8s.io/pod-group": "team-a"}},
        "it makes no gang; write a PodGroup of scheduling.sigs.k8s.io/v1alpha1",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_words_nobody_serves(name: str) -> None:
    """The field with its value, what follows, and no more than a warning holds."""
    fields, words = WORDS[name]
    (found,) = in_metadata(Metadata(**fields), "Pod ns/p", "spec.template.")
    assert found.place.startswith("spec.template.metadata.") and found.place.endswith("]=team-a")
    assert found.text.startswith(f"Pod ns/p: nothing acts on {found.place} yet: ") and words in found.text
    assert len(found.text) <= 256


def test_served_words_say_nothing() -> None:
    """Kueue's topology, Volcano's words, and a key without a value."""
    labels = {
        "volcano.sh/preemptable": "false",
        "volcano.sh/queue-name": "q",
        "pod-group.scheduling.sigs.k8s.io": "g",
        "kueue.x-k8s.io/queue-name": "",
    }
    annotations = {
        "kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/zone",
        "scheduling.volcano.sh/queue-name": "q",
        "scheduling.k8s.io/group-name": "g",
    }
    assert in_metadata(Metadata(labels=labels, annotations=annotations), "Pod ns/p") == ()
    assert in_metadata(Metadata(), "Pod ns/p") == ()


def test_a_long_value_is_cut() -> None:
    """An annotation holds up to 256 KiB."""
    (found,) = in_metadata(Metadata(annotations={"kueue.x-k8s.io/queue-name": "g" * 200_000}), "Pod ns/p")
    assert len(found.text) < 400


def test_a_queue_of_that_name_serves_kueues_word() -> None:
    """Whoever wrote it for Kueue gets that queue."""
    named = Metadata(labels={"kueue.x-k8s.io/queue-name": "team-a"})
    (found,) = in_metadata(named, "Pod ns/p", queues={"team-b"})
    assert found.queue == "team-a" and in_metadata(named, "Pod ns/p", queues={"team-a"}) == ()


def test_the_class_of_a_job_that_waits_whole() -> None:
    """It orders Workloads; on anything else it is a word that nobody serves."""
    named = Metadata(labels={"kueue.x-k8s.io/priority-class": "high"})
    assert in_metadata(named, "Job ns/j", whole=True) == () and len(in_metadata(named, "Pod ns/p")) == 1


def test_a_suspended_job_is_told_that_nothing_resumes_it() -> None:
    """As Kueue's guide has it written; without a queue somebody else means to resume it."""
    queued = Metadata(labels={"kueue.x-k8s.io/queue-name": "team-a"})
    assert "spec.suspend is true, and it waits until its LocalQueue admits it" in held_for_ever(
        queued, True, "Job ns/j"
    )
    assert held_for_ever(queued, True, "Job ns/j", {"team-a"}) == ""
    assert held_for_ever(queued, False, "Job ns/j") == held_for_ever(Metadata(), True, "Job ns/j") == ""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.definition)
def test_kinds(kind: Any) -> None:
    text = kind_sentence(kind, f"{kind.kind} a")
    assert text.startswith(f"{kind.kind} a: nothing acts on {kind.kind} of {kind.group} yet: ") and len(text) <= 256


def documents(*folders: str) -> list[dict[str, Any]]:
    files = [file for folder in folders for file in (DEPLOY / folder).rglob("*.yaml")]
    return [found for file in files for found in yaml.safe_load_all(file.read_text()) if found]


def _controlled(definition: dict[str, Any]) -> bool:
    return (definition["metadata"].get("annotations") or {}).get("sublet.dev/controlled") == "true"


def test_each_kind_is_looked_at_everywhere() -> None:
    """The table, the marks of the definitions, the webhook's rules and the scheduler's rights name the same kinds."""
    stored = {kind.definition for kind in KINDS if kind.stored}
    definitions = [found for found in documents("crds") if found["kind"] == "CustomResourceDefinition"]
    marked = {
        found["metadata"]["name"]: found["spec"]
        for found in definitions
        if (found["metadata"].get("annotations") or {}).get(STORED_ONLY) == "true"
    }
    assert marked.keys() == stored
    for kind in KINDS:
        if kind.stored:
            spec = marked[kind.definition]
            assert (spec["names"]["kind"], spec["versions"][0]["name"]) == (kind.kind, kind.version)
    asked = {
        f"{resource}.{group}"
        for found in documents("admission")
        for hook in found.get("webhooks") or ()
        if hook["name"] == "unserved.sublet.dev"
        for rule in hook["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert asked == {kind.definition for kind in KINDS}
    (role,) = (
        found
        for found in documents("scheduler")
        if (found["kind"], found.get("metadata", {}).get("name")) == ("ClusterRole", "sublet-scheduler")
    )
    named = [rule for rule in role["rules"] if "customresourcedefinitions" in rule["resources"]]
    ours = {found["metadata"]["name"] for found in definitions if _controlled(found)}
    assert [(set(rule["resourceNames"]), rule["verbs"]) for rule in named] == [(stored | ours, ["get"])]
    read = {
        f"{resource}.{group}"
        for rule in role["rules"]
        if rule["verbs"] == ["list", "watch"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert stored <= read
