"""What may help whom."""

from __future__ import annotations

import pytest
from scheduler_builders import node

from model.node import Node
from model.resources import BATCH_CPU, PODS
from scheduler.core.cpus import free_cpus
from scheduler.core.filters import podaffinity, ports, spread, static, volumes
from scheduler.core.filters.fit import FitReport
from scheduler.core.load import limit
from scheduler.core.queueing.news import ANYTHING, EVERYTHING, News, NewsKind, freed, need_of, node_news

CASES: dict[str, tuple[str, News, bool]] = {
    "what is missing became free": ("Insufficient cpu", freed(["cpu", "pods"]), True),
    "something else became free": ("Insufficient cpu", freed(["memory", "pods"]), False),
    "a place for a pod became free": ("Too many pods", freed(["pods"]), True),
    "a relabelled node has no more room": ("Insufficient cpu", News(NewsKind.NODE_CHANGED), False),
    "a pod that went is no taint": (static.UNTOLERATED, freed(["cpu"]), False),
    "CPUs were given back": (free_cpus.NOT_ENOUGH, News(NewsKind.CPUS), True),
    "a pod without any went": (free_cpus.NOT_ENOUGH, News(NewsKind.PODS), False),
    "a node told its CPUs": (free_cpus.INVALID_TOPOLOGY, News(NewsKind.CPUS), True),
    "a label about CPUs changed": (free_cpus.POLICY_CONFLICT, News(NewsKind.NODE_CHANGED), True),
    "cores of another size": (free_cpus.SMT_ALIGNMENT, News(NewsKind.CPUS), True),
    "a taint went": (static.UNTOLERATED, News(NewsKind.NODE_CHANGED), True),
    "uncordoned": (static.UNSCHEDULABLE, News(NewsKind.NODE_CHANGED), True),
    "relabelled": (static.SELECTOR, News(NewsKind.NODE_CHANGED), True),
    "what could not be read is gone": (static.CLOSED, News(NewsKind.NODE_CHANGED), True),
    "a pod came to be near": (podaffinity.AFFINITY, News(NewsKind.PODS), True),
    "a pod went that was in the way": (podaffinity.ANTI_AFFINITY, News(NewsKind.PODS), True),
    "a pod went that objected": (podaffinity.EXISTING, News(NewsKind.PODS), True),
    "the skew changed": (spread.SPREAD, News(NewsKind.PODS), True),
    "a node got the label": (spread.UNLABELLED, News(NewsKind.NODE_CHANGED), True),
    "a node got the label of a topology": ("no node has label nodemetric", News(NewsKind.NODE_CHANGED), True),
    "a node got a label of a topology": ("node(s) have no label nodemetric", News(NewsKind.NODE_CHANGED), True),
    "capacity is no label": ("no node has label rack", freed(["cpu"]), False),
    "a port became free": (ports.PORTS, News(NewsKind.PODS), True),
    "a volume was bound": (volumes.CONFLICT, News(NewsKind.VOLUMES), True),
    "a volume was made": (volumes.NO_VOLUME, News(NewsKind.VOLUMES), True),
    "a claim was made": ('persistentvolumeclaim "c" not found', News(NewsKind.VOLUMES), True),
    "capacity is no volume": (volumes.CONFLICT, freed(["cpu"]), False),
    "load fell": (limit.EXCEEDED.format("cpu"), News(NewsKind.LOAD), True),
    "a node was measured": (limit.EXPIRED, News(NewsKind.LOAD), True),
    "capacity is no load": (limit.EXPIRED, freed(["cpu"]), False),
}


@pytest.mark.parametrize("name", CASES)
def test_hints(name: str) -> None:
    """News helps if it is about what refused some node; the texts are the filters' own."""
    reason, news, helps = CASES[name]
    need = need_of(FitReport(1, 0, (((reason,), 1),)))
    assert need.served_by(news) is helps
    assert need.served_by(News(NewsKind.NODE_ADDED))


def test_any_node_may_be_the_one() -> None:
    """What refuses any of the nodes counts, together or apart."""
    need = need_of(FitReport(3, 0, ((("Insufficient cpu", "Insufficient memory"), 1), ((static.SELECTOR,), 2))))
    helped = [need.served_by(news) for news in (freed(["cpu"]), freed(["memory"]), News(NewsKind.NODE_CHANGED))]
    assert helped == [True] * 3
    assert not need.served_by(News(NewsKind.PODS | NewsKind.VOLUMES | NewsKind.LOAD))


def test_ignorance_errs_towards_trying_again() -> None:
    """With a feasible node the cause is not in the report; an unknown text waits for any change of a node."""
    assert need_of(FitReport(2, 1)) == ANYTHING
    assert all(ANYTHING.served_by(News(kind)) for kind in EVERYTHING)
    assert need_of(FitReport(1, 0, ((("node(s) said no",), 1),))).served_by(News(NewsKind.NODE_CHANGED))


def test_news_of_a_turn_adds_up() -> None:
    """Kinds and resources together."""
    both = freed(["cpu"]) | News(NewsKind.PODS) | freed(["memory"])
    assert both == News(NewsKind.CAPACITY | NewsKind.PODS, frozenset({"cpu", "memory"}))
    assert not need_of(FitReport(1, 0, ((("Insufficient cpu",), 1),))).served_by(News())


NODE = node(batch_cpu=1000, pods=4)
NODES: dict[str, tuple[Node | None, Node, News]] = {
    "a node that was not there": (None, NODE, News(NewsKind.NODE_ADDED)),
    "nothing": (NODE, NODE, freed([])),
    "more of one resource": (NODE, node(batch_cpu=1001, pods=4), freed([BATCH_CPU])),
    "more of one and less of another": (NODE, node(batch_cpu=999, pods=5), freed([PODS])),
    "less": (NODE, node(batch_cpu=999, pods=4), freed([])),
    "a label": (NODE, node(batch_cpu=1000, pods=4, labels={"rack": "r"}), freed([]) | News(NewsKind.NODE_CHANGED)),
    "uncordoned and more": (
        node(batch_cpu=1000, pods=4, unschedulable=True),
        node(batch_cpu=2000, pods=4),
        freed([BATCH_CPU]) | News(NewsKind.NODE_CHANGED),
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), NODES.values(), ids=NODES.keys())
def test_what_became_of_a_node(before: Node | None, after: Node, expected: News) -> None:
    """Of its resources only those that grew; who waits for another one is not asked again."""
    assert node_news(before, after) == expected
