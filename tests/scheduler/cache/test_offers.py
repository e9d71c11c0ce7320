"""Offers judged by the ratio people allow: told, forgotten, and judged again when that changes."""

from __future__ import annotations

from kube.informer import Change, ChangeKind
from kube.objects import ConfigMap, Metadata
from model.node import Node
from model.resources import BATCH_CPU, CPU, ResourceVector
from scheduler.cache.offers import Offers
from scheduler.cache.refusals import Refusals

RATIO = "node.koordinator.sh/cpu-normalization-ratio"


def node(batch_cpu: int, ratio: str = "", name: str = "n1") -> Node:
    """A node of one CPU."""
    amounts = {CPU: 1000, BATCH_CPU: batch_cpu}
    return Node(
        name=name,
        capacity=ResourceVector({CPU: 1000}),
        allocatable=ResourceVector(amounts),
        annotations={RATIO: ratio} if ratio else {},
    )


def metadata(version: str = "1") -> Metadata:
    return Metadata("n1", uid="u", resource_version=version)


def config(text: str, kind: ChangeKind = ChangeKind.MODIFIED) -> Change[ConfigMap]:
    found = Metadata("slo-controller-config", "koordinator-system")
    return Change(kind, ConfigMap(found, {"cpu-normalization-config": text}))


def allowing(ratio: float) -> Change[ConfigMap]:
    return config(f'{{"enable": true, "ratioModel": {{"fast": {{"baseRatio": {ratio}}}}}}}')


def lent(found: Node) -> int:
    return found.allocatable[BATCH_CPU]


def test_what_is_not_believed_is_kept_and_told_once() -> None:
    """Until the node offers what it has."""
    refusals = Refusals()
    offers = Offers(refusals, 1.0)
    assert lent(offers.judged(node(1001), metadata())) == 0
    assert lent(offers.judged(node(1001), metadata("2"))) == 0
    assert "counts as 0" in offers.doubts["n1"]
    assert [refusal.message for refusal in refusals.take()] == [f"Node n1: {offers.doubts['n1']}"]
    assert lent(offers.judged(node(1000), metadata())) == 1000
    assert offers.doubts == {}
    offers.judged(node(1001), metadata())
    assert len(refusals.take()) == 1


def test_a_ratio_is_believed_up_to_the_setting() -> None:
    """Where there is no document."""
    offers = Offers(Refusals(), 1.5)
    assert lent(offers.judged(node(1400, "1.4"), metadata())) == 1400
    assert lent(offers.judged(node(1600, "1.6"), metadata())) == 0


def test_nodes_that_claim_a_ratio_are_judged_again() -> None:
    """By what the document says now; those that claim none are not."""
    offers = Offers(Refusals(), 1.0)
    assert lent(offers.judged(node(1200, "1.2"), metadata())) == 0
    offers.judged(node(900, name="n2"), metadata())
    again = offers.configured(allowing(1.2))
    assert [(found.name, lent(found)) for found in again] == [("n1", 1200)]
    assert offers.doubts == {}
    assert [lent(found) for found in offers.configured(allowing(1.1))] == [0]
    assert [lent(found) for found in offers.configured(config("", ChangeKind.DELETED))] == [0]


def test_a_document_that_cannot_be_read_changes_nothing() -> None:
    """It is told, with what holds in its stead, and no more once it can be read."""
    refusals = Refusals()
    offers = Offers(refusals, 1.0)
    offers.configured(allowing(1.2))
    assert offers.configured(config("{")) == []
    (told,) = refusals.take()
    assert told.kind == "ConfigMap" and told.message.endswith("the CPU ratios it allowed before stay in force")
    assert lent(offers.judged(node(1200, "1.2"), metadata())) == 1200
    offers.configured(allowing(1.2))
    offers.configured(config("{"))
    assert len(refusals.take()) == 1


def test_a_node_that_is_gone_is_forgotten() -> None:
    """Its doubt, and that it claimed a ratio."""
    offers = Offers(Refusals(), 1.0)
    offers.judged(node(1200, "1.2"), metadata())
    offers.forget("n1")
    assert offers.doubts == {}
    assert offers.configured(allowing(1.2)) == []


def test_a_node_that_claims_no_more_is_not_judged_again() -> None:
    """The newest word counts."""
    offers = Offers(Refusals(), 1.0)
    offers.judged(node(1200, "1.2"), metadata())
    offers.judged(node(900), metadata("2"))
    assert offers.configured(allowing(1.2)) == []
