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
from scheduler.core.queueing.news import ANYTHING, EVERYTHING, Growth, Need, News, NewsKind, freed, need_of, node_news
from scheduler.core.snapshot.podclass import PodClass

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


def grown(resource: str, batch_cpu: int, pods: int) -> News:
    """A node of which pods use 600 batch-cpu has more of a resource."""
    most = {PODS: pods, BATCH_CPU: batch_cpu}
    return News(NewsKind.GROWN, grown=(Growth(frozenset({resource}), most | {BATCH_CPU: batch_cpu - 600}, most),))


NODES: dict[str, tuple[Node | None, Node, News]] = {
    "a node that was not there": (None, NODE, News(NewsKind.NODE_ADDED)),
    "nothing": (NODE, NODE, News()),
    "more of one resource": (NODE, node(batch_cpu=1001, pods=4), grown(BATCH_CPU, 1001, 4)),
    "more of one and less of another": (NODE, node(batch_cpu=999, pods=5), grown(PODS, 999, 5)),
    "less": (NODE, node(batch_cpu=999, pods=4), News()),
    "a label": (NODE, node(batch_cpu=1000, pods=4, labels={"rack": "r"}), News(NewsKind.NODE_CHANGED)),
    "uncordoned and more": (
        node(batch_cpu=1000, pods=4, unschedulable=True),
        node(batch_cpu=2000, pods=4),
        grown(BATCH_CPU, 2000, 4) | News(NewsKind.NODE_CHANGED),
    ),
}


@pytest.mark.parametrize(("before", "after", "expected"), NODES.values(), ids=NODES.keys())
def test_what_became_of_a_node(before: Node | None, after: Node, expected: News) -> None:
    """Of its resources only those that grew; who waits for another one is not asked again."""
    assert node_news(before, after, lambda: {BATCH_CPU: 600}) == expected


GROWTH: dict[str, tuple[dict[str, int] | None, tuple[int, int], tuple[bool, bool]]] = {
    "as much is free": ({BATCH_CPU: 400, PODS: 1}, (1000, 4), (True, True)),
    "as much is there, and not free": ({BATCH_CPU: 401, PODS: 1}, (1000, 4), (True, False)),
    "the node has never so much": ({BATCH_CPU: 1001, PODS: 1}, (1000, 4), (False, False)),
    "it has too little of another resource": ({BATCH_CPU: 400, "memory": 1}, (1000, 4), (False, False)),
    "nodes are not what is lacking": (None, (1000, 4), (True, False)),
    "another node had more, of which this says nothing": ({BATCH_CPU: 400, PODS: 5}, (1000, 4), (False, False)),
}


@pytest.mark.parametrize(("least", "has", "helps"), GROWTH.values(), ids=GROWTH.keys())
def test_whom_a_node_that_grew_helps(
    least: dict[str, int] | None, has: tuple[int, int], helps: tuple[bool, bool]
) -> None:
    """Who fits there is tried again, at once where he fits as it is: its agent says that it grew as often as it likes."""
    need, news = Need(NewsKind.NODE_ADDED, frozenset({BATCH_CPU}), least), grown(BATCH_CPU, *has)
    assert (need.served_by(news), need.ended_by(news)) == helps
    assert not Need(NewsKind.NODE_ADDED, frozenset({"cpu"}), {}).served_by(news)


def test_what_is_asked_for_at_least() -> None:
    """Of members that ask for unlike amounts the least of what all of them ask for."""
    classes = [PodClass((("a", 3), ("b", 1))), PodClass((("a", 2), ("c", 9)))]
    report = FitReport(1, 0, ((("Insufficient a",), 1),))
    assert need_of(report, classes).least == {"a": 2} and need_of(report).least == {}


def test_many_nodes_that_grew_are_told_as_one() -> None:
    """With the most that any of them has."""
    news = News()
    for index in range(20):
        news |= grown(BATCH_CPU, 1000 + index, 30 - index)
    assert len(news.grown) <= 8
    for index in range(20):
        least = {BATCH_CPU: 1000 + index, PODS: 30 - index}
        assert Need(NewsKind.NONE, frozenset({BATCH_CPU}), least).served_by(news)
    assert ANYTHING.served_by(news) and not ANYTHING.ended_by(news)
