"""Who names which queue, and whose word counts."""

from __future__ import annotations

import pytest

from kube.dialects.queues.membership import NamedQueues, named_queues, names_unknown, resolved, unknown_queue
from kube.objects import Metadata

VOLCANO = {"annotations": {"scheduling.volcano.sh/queue-name": "v"}}
NAMED: dict[str, tuple[dict[str, dict[str, str]], NamedQueues]] = {
    "nobody": ({}, NamedQueues()),
    "Volcano's annotation": (VOLCANO, NamedQueues("v")),
    "a Volcano Job's label": ({"labels": {"volcano.sh/queue-name": "v"}}, NamedQueues("v")),
    "a Volcano Job's annotation": ({"annotations": {"volcano.sh/queue-name": "v"}}, NamedQueues("v")),
    "Koordinator's label": ({"labels": {"quota.scheduling.koordinator.sh/name": "k"}}, NamedQueues("k")),
    "Koordinator's default": (
        {"labels": {"quota.scheduling.koordinator.sh/name": "koordinator-default-quota"}},
        NamedQueues("default"),
    ),
    "Kueue's label": ({"labels": {"kueue.x-k8s.io/queue-name": "l"}}, NamedQueues("", "l")),
    "Kueue's annotation of old": ({"annotations": {"kueue.x-k8s.io/queue-name": "l"}}, NamedQueues("", "l")),
    "ours": ({"labels": {"sublet.dev/queue": "s"}}, NamedQueues("s")),
    "Kueue's beside ours": (
        {"labels": {"kueue.x-k8s.io/queue-name": "l", "sublet.dev/queue": "s"}},
        NamedQueues("s", "l"),
    ),
    "Koordinator's before Kueue's and ours": (
        {
            "labels": {
                "quota.scheduling.koordinator.sh/name": "k",
                "kueue.x-k8s.io/queue-name": "l",
                "sublet.dev/queue": "s",
            }
        },
        NamedQueues("k"),
    ),
    "Volcano's before all": ({**VOLCANO, "labels": {"quota.scheduling.koordinator.sh/name": "k"}}, NamedQueues("v")),
    "an empty text": ({"labels": {"sublet.dev/queue": ""}}, NamedQueues()),
    "a long text": ({"annotations": {"volcano.sh/queue-name": "v" * 300}}, NamedQueues("v" * 253)),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_pod_s_own_word(case: str) -> None:
    fields, wanted = NAMED[case]
    assert named_queues(Metadata(**fields)) == wanted


RESOLVED = {
    "its own word": (("own", "group", "ns"), "own"),
    "that of its PodGroup": (("", "group", "ns"), "group"),
    "default, as Volcano's definition fills it in": (("", "default", "ns"), "of-ns"),
    "that of its namespace": (("", "", "ns"), "of-ns"),
    "nobody's": (("", "", "other"), "default"),
}


@pytest.mark.parametrize("case", RESOLVED)
def test_whose_word_counts(case: str) -> None:
    told, wanted = RESOLVED[case]
    assert resolved(*told, {"ns": "of-ns"}) == wanted


def test_an_unknown_queue_is_told() -> None:
    """With the field that names it; Kueue's word holds nobody back, and one that is known says nothing."""
    pod = Metadata(labels={"sublet.dev/queue": "s"})
    text = "Pod a/b: spec.template.metadata.labels[sublet.dev/queue] is s, and there is no queue of that name"
    assert names_unknown(pod, "Pod a/b", {"default"}, "spec.template.") == f"{text}: pods wait until there is"
    assert names_unknown(Metadata(**VOLCANO), "Pod a/b", ()).startswith(
        "Pod a/b: metadata.annotations[scheduling.volcano.sh/queue-name] is v"
    )
    both = Metadata(labels={"sublet.dev/queue": "s", "kueue.x-k8s.io/queue-name": "l"})
    assert names_unknown(pod, "Pod a/b", {"s"}) == names_unknown(both, "Pod a/b", {"l"}) == ""
    assert names_unknown(Metadata(labels={"kueue.x-k8s.io/queue-name": "l"}), "Pod a/b", ()) == ""
    assert len(unknown_queue("Pod a/b", "label", "x" * 253)) < 200
