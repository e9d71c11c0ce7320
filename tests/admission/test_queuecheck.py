"""Queues of all kinds and Volcano's PodGroups: what is refused, and what their writer is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import Cluster

from admission.check_result import CheckResult
from admission.core.queue_rules import KnownQueue
from admission.documents import check, check_deleted
from model.queue import Queue, QuotaCell

OURS, VOLCANO, QUOTA = (
    ("sublet.dev", "Queue"),
    ("scheduling.volcano.sh", "Queue"),
    ("scheduling.sigs.k8s.io", "ElasticQuota"),
)
KOORDINATOR = "quota.scheduling.koordinator.sh/"
CPU = ("", "cpu")


def cluster(**queues: KnownQueue) -> Cluster:
    found = Cluster()
    found.known = queues
    return found


def known(name: str, parent: str = "", where: str = "", cell: QuotaCell | None = None, **facts: Any) -> KnownQueue:
    cells = {} if cell is None else {CPU: cell}
    return KnownQueue(Queue(name, parent, cells=cells), where or f"Queue {name}", **facts)


def raw(spec: Any = None, name: str = "a", **metadata: Any) -> bytes:
    return msgspec.json.encode({"metadata": {"name": name, "namespace": "", **metadata}, "spec": spec or {}})


def checked(kind: tuple[str, str], written: bytes, around: Cluster, old: bytes | None = None) -> CheckResult:
    found = check(*kind, written, old, around)
    assert found is not None
    return found


ORG = known("org", cell=QuotaCell(4000, 8000, 16_000))
REFUSED: dict[str, tuple[tuple[str, str], bytes, Cluster, str]] = {
    "ours: a bad field": (OURS, raw({"weight": 0}), cluster(), "Queue a: spec.weight: is 0"),
    "ours: a bad type": (OURS, b'{"metadata":{"name":1}}', cluster(), "Queue: Expected `str`, got `int`"),
    "ours: no parent": (OURS, raw({"parent": "org"}), cluster(), "Queue a: spec.parent is org, and there is no queue"),
    "ours: a guarantee": (
        OURS,
        raw({"parent": "org", "quota": {"guaranteed": {"cpu": 5}}}),
        cluster(org=ORG),
        "Queue a: spec.quota.guaranteed.cpu is 5: the queues of org would have 5 together, more than its 4",
    ),
    "Volcano's: what it deserves": (
        VOLCANO,
        raw({"parent": "org", "deserved": {"cpu": 9}}),
        cluster(org=ORG),
        "Queue.scheduling.volcano.sh a: spec.deserved.cpu is 9: the queues of org would have 9 together, more than its 8",
    ),
    "Volcano's: its capability": (
        VOLCANO,
        raw({"parent": "org", "capability": {"cpu": 20}}),
        cluster(org=ORG),
        "Queue.scheduling.volcano.sh a: spec.capability.cpu is 20, more than the 16 of org above it",
    ),
    "Koordinator's: min": (
        QUOTA,
        raw({"min": {"cpu": 9}, "max": {"cpu": 90}}, namespace="n", labels={KOORDINATOR + "parent": "org"}),
        cluster(org=ORG),
        "ElasticQuota n/a: spec.min.cpu is 9: the queues of org would have 9 together, more than its 8",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    kind, written, around, words = REFUSED[case]
    (refusal,) = checked(kind, written, around).refusals
    assert refusal.startswith(words)


LET_IN: dict[str, tuple[tuple[str, str], bytes, Cluster, tuple[str, ...]]] = {
    "ours": (OURS, raw({"weight": 2}), cluster(), ()),
    "the published Volcano queue": (
        VOLCANO,
        raw({"weight": 10, "capability": {"cpu": 512}, "guarantee": {"resource": {"cpu": 128}}}),
        cluster(),
        (),
    ),
    "a field nobody acts on": (
        VOLCANO,
        raw({"priority": 3}),
        cluster(),
        ("Queue.scheduling.volcano.sh a: nothing acts on spec.priority 3: queues are ordered by their shares",),
    ),
    "a name that another has": (
        VOLCANO,
        raw({"capability": {"cpu": 1}}),
        cluster(a=known("a")),
        ("Queue.scheduling.volcano.sh a: has the name of Queue a; only one of them counts; rename one",),
    ),
    "less than is in use": (
        OURS,
        raw({"quota": {"hard": {"cpu": 1}}}),
        cluster(a=known("a", used={"cpu": 2000})),
        ("Queue a: spec.quota.hard.cpu is 1, less than the 2 in use: what runs stays, and nothing more starts until "
         "enough of it ended",),
    ),
    "Koordinator's max above its parent's": (
        QUOTA,
        raw({"min": {"cpu": 1}, "max": {"cpu": 90}}, namespace="n", labels={KOORDINATOR + "parent": "org"}),
        cluster(org=ORG),
        (),
    ),
    "Koordinator's, forced": (
        QUOTA,
        raw(
            {"min": {"cpu": 9}, "max": {"cpu": 90}},
            namespace="n",
            labels={KOORDINATOR + "parent": "org", KOORDINATOR + "allow-force-update": "true"},
        ),
        cluster(org=ORG),
        (),
    ),
    "namespaces that cannot be read": (
        QUOTA,
        raw(namespace="n", annotations={KOORDINATOR + "namespaces": "x"}),
        cluster(),
        (f"ElasticQuota n/a: metadata.annotations[{KOORDINATOR}namespaces] cannot be read: it names no namespace; write "
         'a list such as ["a", "b"]',),
    ),
    "the whole cluster": (VOLCANO, raw(name="root"), cluster(), ()),
}  # fmt: skip


@pytest.mark.parametrize("case", LET_IN)
def test_what_is_let_in(case: str) -> None:
    kind, written, around, told = LET_IN[case]
    assert checked(kind, written, around) == CheckResult((), told)


def test_before_queues_are_known() -> None:
    """Only what the object says itself is judged."""
    around = Cluster()
    around.known = None
    assert checked(OURS, raw({"parent": "org"}), around) == CheckResult()
    assert checked(OURS, raw({"weight": 0}), around).refusals


def test_what_was_wrong_before_is_only_told() -> None:
    """Whoever changes something else need not mend it first."""
    old, new = raw({"parent": "org"}), raw({"parent": "org", "weight": 2})
    (told,) = checked(OURS, new, cluster(), old).warnings
    assert told.startswith("Queue a: spec.parent is org") and checked(OURS, new, cluster(), old).refusals == ()


DELETED: dict[str, tuple[tuple[str, str], bytes, KnownQueue, str]] = {
    "ours with jobs": (OURS, raw(), known("a", running=1), "Queue a: 1 job that runs in it"),
    "Volcano's that is a parent": (
        VOLCANO,
        raw(),
        known("a", where="Queue.scheduling.volcano.sh a"),
        "Queue.scheduling.volcano.sh a: queue b is part of it; delete or move that first",
    ),
    "Koordinator's with jobs": (
        QUOTA,
        raw(namespace="n"),
        known("a", where="ElasticQuota n/a", waiting=2),
        "ElasticQuota n/a: 2 jobs that wait in it",
    ),
}


@pytest.mark.parametrize("case", DELETED)
def test_deletions(case: str) -> None:
    """Refused while somebody is in it, and let pass once nobody is; one that cannot be read is best deleted."""
    kind, written, own, words = DELETED[case]
    around = cluster(a=own, **({"b": known("b", "a")} if "parent" in case else {}))
    found = check_deleted(*kind, written, around)
    assert found is not None and found.refusals[0].startswith(words)
    assert check_deleted(*kind, written, cluster()) == check_deleted(*kind, b'{"metadata":1}', around) == CheckResult()


def test_others_may_be_deleted() -> None:
    assert check_deleted("", "ConfigMap", b"{}", cluster()) is None


GROUPS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "a good one": ({"minMember": 2, "queue": "a", "priorityClassName": "koord-batch"}, ()),
    "the default queue": ({"minMember": 2, "queue": "default"}, ()),
    "a bad field": ({"minMember": -1}, ("spec.minMember: is -1 (expected a whole number >= 0)",)),
    "a queue that is not there": (
        {"queue": "gone"},
        ("spec.queue is gone, and there is no queue of that name: pods wait until there is",),
    ),
    "a class that is not there": (
        {"priorityClassName": "gone"},
        ("spec.priorityClassName: there is no PriorityClass gone; its pods' priority counts",),
    ),
    "a field nobody acts on": (
        {"subGroupPolicy": [{"name": "x"}]},
        ("nothing acts on spec.subGroupPolicy: its pods are one group",),
    ),
}


@pytest.mark.parametrize("case", GROUPS)
def test_volcanos_groups(case: str) -> None:
    """Nothing of a gang is refused."""
    spec, told = GROUPS[case]
    found = checked(("scheduling.volcano.sh", "PodGroup"), raw(spec, "g", namespace="ns"), cluster(a=known("a")))
    assert found == CheckResult((), tuple(f"PodGroup.scheduling.volcano.sh ns/g: {each}" for each in told))
