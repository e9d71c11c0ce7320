"""What is ours to act on and cannot be read falls back, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from kube.dialects.gangs import membership
from kube.dialects.koordinator import cpuburst, loadaware
from kube.dialects.misread import in_metadata
from kube.dialects.sublet import eviction, pod_annotations
from kube.objects import Metadata
from model.job.labels import CHECKPOINT_SOCKET

WRONG: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "an eviction policy": ("annotations", eviction.ANNOTATION_POLICY, ("[[", '"BE"', "[1]"), "no rule may evict"),
    "an eviction priority": ("annotations", eviction.ANNOTATION_PRIORITY, ("1e9", "x", "99999999999"), "counts as 0"),
    "a sub-priority": ("labels", eviction.LABEL_PRIORITY, ("high", "2147483648"), "counts as unset"),
    "a switch": ("labels", eviction.LABEL_ENABLED, ("True", "yes"), "write true or false"),
    "a notice": ("annotations", pod_annotations.ANNOTATION_NOTICE, ("1e400", "5m", "-1"), "grace period"),
    "a socket": ("annotations", CHECKPOINT_SOCKET, ("True", "yes"), "no socket; write true or false"),
    "a deadline": ("annotations", membership.WAITING_TIMES[0], ("soon", "30"), "write a duration such as 30m"),
    "an older deadline": ("annotations", membership.WAITING_TIMES[1], ("soon",), "write a duration such as 30m"),
    "a mode": ("annotations", membership.ANNOTATION_MODE, ("strict", "Foo"), "the gang is Strict; write NonStrict"),
    "a waiting time": ("annotations", membership.ANNOTATION_WAIT, ("9e9s", "600", "0s"), "the usual time holds"),
    "a match policy": ("annotations", membership.ANNOTATION_MATCH, ("all",), "the usual policy holds"),
    "the same elsewhere": ("annotations", membership.ANNOTATION_MATCH_ALIAS, ("all",), "the usual policy holds"),
    "groups": (
        "annotations",
        membership.ANNOTATION_GROUPS,
        ('["default/a"', '["a,b"]', "x"),
        "the gang is placed alone",
    ),
    "bursts": ("annotations", cpuburst.ANNOTATION, ("auto", '{"policy": "max"}'), "node's strategy"),
    "factors": ("annotations", loadaware.ANNOTATION_FACTORS, ('{"cpu": NaN}', '{"cpu": 0}', "85"), "usual factors"),
    "a time": ("annotations", loadaware.ANNOTATION_AFTER_SCHEDULED, ("-1", "1m"), "write whole seconds"),
    "another": ("annotations", loadaware.ANNOTATION_AFTER_INITIALIZED, ("-1",), "write whole seconds"),
}
RIGHT: tuple[dict[str, Any], ...] = (
    {},
    {"annotations": {CHECKPOINT_SOCKET: "true"}},
    {"labels": {eviction.LABEL_ENABLED: "false", eviction.LABEL_PRIORITY: "-5"}},
    {"annotations": {eviction.ANNOTATION_POLICY: "null", eviction.ANNOTATION_PRIORITY: "+7"}},
    {"annotations": {eviction.ANNOTATION_POLICY: '["BEMemoryEvict"]', pod_annotations.ANNOTATION_NOTICE: " 2.5 "}},
    {"annotations": {membership.ANNOTATION_MODE: "NonStrict", membership.ANNOTATION_WAIT: "1h30m"}},
    {"annotations": {membership.ANNOTATION_MODE: "", membership.ANNOTATION_WAIT: "", membership.ANNOTATION_GROUPS: ""}},
    {"annotations": {membership.ANNOTATION_MATCH: "only-waiting", membership.ANNOTATION_GROUPS: '["default/a", "b"]'}},
    {"annotations": {loadaware.ANNOTATION_FACTORS: '{"cpu": 85}', loadaware.ANNOTATION_AFTER_SCHEDULED: "10"}},
)


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_named(name: str) -> None:
    """Object, field, text, what holds instead and what to write, in one line of a warning's length."""
    where, key, texts, words = WRONG[name]
    for text in (*texts, "x" * 100_000):
        (found,) = in_metadata(Metadata(**{where: {key: text}}), "Pod ns/p", "spec.template.")
        assert found.text.startswith(f"Pod ns/p: spec.template.metadata.{where}[{key}] is {text[:40]!r}, which cannot")
        assert words in found.text and len(found.text) <= 256


@pytest.mark.parametrize("told", RIGHT)
def test_what_can_be_read_is_not_told(told: dict[str, Any]) -> None:
    """Nor is an empty text, which says nothing."""
    assert in_metadata(Metadata(**told), "Pod ns/p") == ()
