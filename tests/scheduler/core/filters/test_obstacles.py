"""One answer of all filters about other pods: the first word counts, numbers are the smallest, nothing asked is free."""

from __future__ import annotations

from filter_builders import HOST, ZONE, apart, asked, cluster, near, pod_index, term, told
from scheduler_builders import node, pod

from model.pod.affinity import HostPort
from scheduler.core.filters.obstacles import no_obstacles
from scheduler.core.filters.podaffinity import AFFINITY, ANTI_AFFINITY, EXISTING
from scheduler.core.filters.ports import PORTS

NODES = cluster(
    node("a", labels={ZONE: "x", HOST: "a"}),
    node("b", labels={ZONE: "x", HOST: "b"}),
    node("c", labels={ZONE: "y", HOST: "c"}),
)
HTTP = (HostPort(80),)


def test_a_pod_without_terms_asks_nobody() -> None:
    """And shares one answer with all others on as many rows."""
    found = asked(NODES, pod_index(NODES, [(pod("there", labels={"app": "a"}), "a")]), pod())
    assert found is no_obstacles(3)
    assert not found.refused.any() and found.most is None and not found.apart


def test_the_first_filter_has_the_word() -> None:
    """Ports come before affinity, as with kube-scheduler; where only one refuses, that one is told."""
    there = pod_index(NODES, [(pod("web", host_ports=HTTP), "a"), (pod("rival", labels={"app": "r"}), "c")])
    wanted = pod("new", host_ports=HTTP, affinity=apart(term(HOST, app="r")))
    found = asked(NODES, there, wanted)
    assert told(found) == [PORTS, "", ANTI_AFFINITY]
    assert found.refused.tolist() == [True, False, True]


def test_residents_terms_count_for_who_has_none() -> None:
    """A resident that keeps away from app=a keeps a plain pod of app=a out of its zone."""
    there = pod_index(NODES, [(pod("shy", affinity=apart(term(ZONE, app="a"))), "a")])
    assert told(asked(NODES, there, pod("plain", labels={"app": "a"}))) == [EXISTING, EXISTING, ""]
    assert told(asked(NODES, there, pod("other", labels={"app": "b"}))) == ["", "", ""]


def test_hopeless_is_what_no_eviction_clears() -> None:
    """Whom it wants near is nowhere: nobody's going helps. A rival's going does."""
    alone = asked(NODES, pod_index(NODES, []), pod("new", affinity=near(term(ZONE, app="a"))))
    assert told(alone) == [AFFINITY] * 3 and alone.hopeless.all()
    rival = pod_index(NODES, [(pod("rival", labels={"app": "r"}), "a")])
    found = asked(NODES, rival, pod("new", affinity=apart(term(HOST, app="r"))))
    assert found.refused.tolist() == [True, False, False] and not found.hopeless.any()


def test_the_smallest_number_counts() -> None:
    """A host port allows one more a node, whatever else allows."""
    found = asked(NODES, pod_index(NODES, []), pod("new", host_ports=HTTP))
    assert found.most is not None and found.most.tolist() == [1, 1, 1]
