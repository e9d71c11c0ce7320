"""Affinity and anti-affinity between pods: who may go where, and what a node that is out is told."""

from __future__ import annotations

from typing import Any

import pytest
from filter_builders import HOST, ZONE, apart, asked, cluster, near, pod_index, selector, term, told
from scheduler_builders import node, pod

from model.pod.affinity import Affinity, PodTerm
from model.selector import Selector
from scheduler.core.filters.podaffinity import AFFINITY, ANTI_AFFINITY, EXISTING

NODES = [
    node("n1", labels={ZONE: "z1", HOST: "n1"}),
    node("n2", labels={ZONE: "z1", HOST: "n2"}),
    node("n3", labels={ZONE: "z2", HOST: "n3"}),
    node("n4", labels={HOST: "n4"}),
]
NAMESPACES = {"default": {"team": "x"}, "other": {"team": "y"}, "third": {"team": "y"}}
WEB = pod("web", labels={"app": "web"})
ELSEWHERE = pod("web", namespace="other", labels={"app": "web"})
TEAM_Y = selector(team="y")


def plain(**more: Any) -> Any:
    return pod("new", **more)


CASES: dict[str, tuple[list[Any], Any, list[str]]] = {
    "near a pod: its domain alone": (
        [(WEB, "n1")],
        plain(affinity=near(term(app="web"))),
        ["", "", AFFINITY, AFFINITY],
    ),
    "near a pod by host name": (
        [(WEB, "n1")],
        plain(affinity=near(term(HOST, app="web"))),
        ["", AFFINITY, AFFINITY, AFFINITY],
    ),
    "near nobody there: nowhere": ([], plain(affinity=near(term(app="web"))), [AFFINITY] * 4),
    "first of its kind: anywhere with the label": (
        [],
        plain(labels={"app": "web"}, affinity=near(term(app="web"))),
        ["", "", "", AFFINITY],
    ),
    "first of its kind by one of two terms only": (
        [],
        plain(labels={"app": "web"}, affinity=near(term(app="web"), term(tier="db"))),
        [AFFINITY] * 4,
    ),
    "second of its kind follows the first": (
        [(WEB, "n3")],
        plain(labels={"app": "web"}, affinity=near(term(app="web"))),
        [AFFINITY, AFFINITY, "", AFFINITY],
    ),
    "a first one on a node without the label binds nobody": (
        [(WEB, "n4")],
        plain(labels={"app": "web"}, affinity=near(term(app="web"))),
        ["", "", "", AFFINITY],
    ),
    "two terms are met by one pod that matches both": (
        [(pod("a", labels={"app": "web"}), "n1"), (pod("b", labels={"tier": "db"}), "n1")],
        plain(affinity=near(term(app="web"), term(tier="db"))),
        [AFFINITY] * 4,
    ),
    "two keys: both domains hold such a pod": (
        [(WEB, "n1")],
        plain(affinity=near(term(ZONE, app="web"), term(HOST, app="web"))),
        ["", AFFINITY, AFFINITY, AFFINITY],
    ),
    "another namespace does not count": (
        [(ELSEWHERE, "n1")],
        plain(affinity=near(term(app="web"))),
        [AFFINITY] * 4,
    ),
    "a namespace by name": (
        [(ELSEWHERE, "n1")],
        plain(affinity=near(term(namespaces=("other",), app="web"))),
        ["", "", AFFINITY, AFFINITY],
    ),
    "namespaces by label, the own one not among them": (
        [(ELSEWHERE, "n1"), (WEB, "n3")],
        plain(affinity=near(term(where=TEAM_Y, app="web"))),
        ["", "", AFFINITY, AFFINITY],
    ),
    "all namespaces": (
        [(ELSEWHERE, "n1"), (WEB, "n3")],
        plain(affinity=near(term(where=Selector(), app="web"))),
        ["", "", "", AFFINITY],
    ),
    "no selector matches no pod": (
        [(WEB, "n1")],
        plain(labels={"app": "web"}, affinity=near(PodTerm(ZONE, None))),
        [AFFINITY] * 4,
    ),
    "an empty selector matches every pod": (
        [(WEB, "n1")],
        plain(affinity=near(PodTerm(ZONE, Selector()))),
        ["", "", AFFINITY, AFFINITY],
    ),
    "apart from a pod: the rest, and nodes in no domain": (
        [(WEB, "n1")],
        plain(affinity=apart(term(app="web"))),
        [ANTI_AFFINITY, ANTI_AFFINITY, "", ""],
    ),
    "apart by host name": (
        [(WEB, "n1"), (WEB, "n4")],
        plain(affinity=apart(term(HOST, app="web"))),
        [ANTI_AFFINITY, "", "", ANTI_AFFINITY],
    ),
    "each anti-affinity term counts alone": (
        [(WEB, "n1"), (pod("b", labels={"tier": "db"}), "n3")],
        plain(affinity=apart(term(app="web"), term(tier="db"))),
        [ANTI_AFFINITY, ANTI_AFFINITY, ANTI_AFFINITY, ""],
    ),
    "a resident keeps it away": (
        [(pod("r", affinity=apart(term(app="web"))), "n1")],
        plain(labels={"app": "web"}),
        [EXISTING, EXISTING, "", ""],
    ),
    "a resident's term is not about it": (
        [(pod("r", affinity=apart(term(app="db"))), "n1")],
        plain(labels={"app": "web"}),
        [""] * 4,
    ),
    "a resident on a node without the label keeps nobody away": (
        [(pod("r", affinity=apart(term(app="web"))), "n4")],
        plain(labels={"app": "web"}),
        [""] * 4,
    ),
    "a resident's term is about its own namespace": (
        [(pod("r", namespace="other", affinity=apart(term(app="web"))), "n1")],
        plain(labels={"app": "web"}),
        [""] * 4,
    ),
    "a resident's term picks namespaces by label": (
        [(pod("r", affinity=apart(term(where=TEAM_Y, app="web"))), "n1")],
        plain(labels={"app": "web"}, namespace="third"),
        [EXISTING, EXISTING, "", ""],
    ),
    "a resident's label pick passes its own namespace by": (
        [(pod("r", affinity=apart(term(where=TEAM_Y, app="web"))), "n1")],
        plain(labels={"app": "web"}),
        [""] * 4,
    ),
    "a deleting pod counts until it is gone": (
        [(pod("web", labels={"app": "web"}, deleting=True), "n1")],
        plain(affinity=apart(term(app="web"))),
        [ANTI_AFFINITY, ANTI_AFFINITY, "", ""],
    ),
    "affinity is told before anti-affinity": (
        [(WEB, "n1")],
        plain(affinity=Affinity(pods=(term(app="db"),), anti_pods=(term(app="web"),))),
        [AFFINITY] * 4,
    ),
    "its own term is told before a resident's": (
        [(pod("r", labels={"app": "web"}, affinity=apart(term(app="web"))), "n1")],
        plain(labels={"app": "web"}, affinity=apart(term(app="web"))),
        [ANTI_AFFINITY, ANTI_AFFINITY, "", ""],
    ),
}


@pytest.mark.parametrize(("residents", "wanted", "reasons"), CASES.values(), ids=CASES)
def test_who_may_go_where(residents: list[Any], wanted: Any, reasons: list[str]) -> None:
    """The reason of each node, empty where the pod may go."""
    seen = cluster(*NODES, namespaces=NAMESPACES)
    assert told(asked(seen, pod_index(seen, residents), wanted)) == reasons


def test_fewer_residents_help_against_anti_affinity_only() -> None:
    """What preemption can clear: kube-scheduler calls a missing partner unresolvable."""
    seen = cluster(*NODES)
    found = asked(seen, pod_index(seen, [(WEB, "n1")]), plain(affinity=apart(term(app="web"))))
    assert (found.resolvable, bool(found.hopeless.any())) == ((True,), False)
    found = asked(seen, pod_index(seen, []), plain(affinity=near(term(app="web"))))
    assert (found.resolvable, bool(found.hopeless.all())) == ((False,), True)


def test_pods_that_shun_their_like_go_one_to_a_node() -> None:
    """By host name a limit is enough, and nodes in no domain have none; in wider domains one must ask again."""
    seen = cluster(*NODES)
    alike = plain(labels={"app": "web"}, affinity=apart(term(HOST, app="web")))
    found = asked(seen, pod_index(seen, []), alike)
    assert found.most is not None
    assert (found.most.tolist(), found.apart) == ([1, 1, 1, 1], False)
    wider = asked(seen, pod_index(seen, []), plain(labels={"app": "web"}, affinity=apart(term(ZONE, app="web"))))
    assert wider.most is not None
    assert wider.apart
    assert (wider.most > 1).tolist() == [False, False, False, True]
    other = asked(seen, pod_index(seen, []), plain(labels={"app": "db"}, affinity=apart(term(ZONE, app="web"))))
    assert (other.most, other.apart) == (None, False)


def test_only_the_first_of_a_kind_is_placed_apart() -> None:
    """Once one is there, the rest can be placed together."""
    seen = cluster(*NODES)
    alike = plain(labels={"app": "web"}, affinity=near(term(app="web")))
    assert asked(seen, pod_index(seen, []), alike).apart
    assert not asked(seen, pod_index(seen, [(WEB, "n1")]), alike).apart
