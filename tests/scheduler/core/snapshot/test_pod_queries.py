"""Which residents a term, a constraint or a port means."""

from __future__ import annotations

from typing import Any

import pytest

from model.pod.affinity import Affinity, HostPort, PodTerm, PreferredPods
from model.selector import Operator, Requirement, Selector
from scheduler.core.snapshot.pod_queries import (
    Pods,
    PodsOfAll,
    PodsWithTerm,
    PortUsers,
    ResidentTerm,
    TermKind,
    held_by,
    namespaces_of,
    needed_pairs,
)
from scheduler.core.snapshot.podclass import PodTraits


def app(*values: str, operator: Operator = Operator.IN) -> Selector:
    return Selector((Requirement("app", operator, values),))


def pod_traits(namespace: str = "ns", **more: Any) -> PodTraits:
    return PodTraits(namespace, **more)


A = {"app": "a"}
PODS_CASES: dict[str, tuple[Pods, PodTraits, dict[str, str], bool]] = {
    "matches": (Pods(app("a")), pod_traits(), A, True),
    "another label": (Pods(app("b")), pod_traits(), A, False),
    "no selector matches nobody": (Pods(None), pod_traits(), A, False),
    "an empty selector matches everybody": (Pods(Selector()), pod_traits(), {}, True),
    "in its namespaces": (Pods(app("a"), frozenset({"ns"})), pod_traits(), A, True),
    "elsewhere": (Pods(app("a"), frozenset({"other"})), pod_traits(), A, False),
    "in no namespace": (Pods(app("a"), frozenset()), pod_traits(), A, False),
    "terminating": (Pods(app("a"), None, staying=True), pod_traits(terminating=True), A, False),
    "terminating, and that does not matter": (Pods(app("a")), pod_traits(terminating=True), A, True),
}


@pytest.mark.parametrize(("pods", "who", "labels", "wanted"), PODS_CASES.values(), ids=PODS_CASES)
def test_pods(pods: Pods, who: PodTraits, labels: dict[str, str], wanted: bool) -> None:
    """By selector, namespace and whether they stay."""
    assert pods.holds(who, labels) is wanted


def test_all_of() -> None:
    """Every one must count them."""
    both = PodsOfAll((Pods(app("a")), Pods(Selector((Requirement("tier", Operator.EXISTS),)))))
    assert both.holds(pod_traits(), A | {"tier": "1"})
    assert not both.holds(pod_traits(), A)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80), True),
        (HostPort(80), HostPort(80, ip="10.0.0.1"), True),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True),
    ],
)
def test_ports_clash(one: HostPort, other: HostPort, wanted: bool) -> None:
    """Same port and protocol, and one address or every address."""
    assert PortUsers((HostPort(1), one)).holds(pod_traits(ports=(other,)), {}) is wanted


NEAR, AWAY = PodTerm("zone", app("a")), PodTerm("zone", app("b"), namespaces=("x",))


def test_held_terms() -> None:
    """Of each kind; the namespace counts where the term names none itself."""
    resident = pod_traits(affinity=Affinity(pods=(NEAR,), anti_pods=(AWAY,), preferred_pods=(PreferredPods(-3, NEAR),)))
    assert held_by(resident) == (
        ResidentTerm(TermKind.ANTI, AWAY),
        ResidentTerm(TermKind.AFFINITY, NEAR, "ns"),
        ResidentTerm(TermKind.PREFERRED, NEAR, "ns", -3),
    )
    assert PodsWithTerm(ResidentTerm(TermKind.ANTI, AWAY)).holds(resident, {})
    assert not PodsWithTerm(ResidentTerm(TermKind.ANTI, NEAR)).holds(resident, {})
    assert held_by(pod_traits()) == ()


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        (NEAR, {"own"}),
        (AWAY, {"x"}),
        (PodTerm("zone", app("a"), namespace_selector=Selector()), None),
        (PodTerm("zone", app("a"), namespace_selector=app("shop")), {"shop-1", "shop-2"}),
        (PodTerm("zone", app("a"), ("x",), app("shop")), {"x", "shop-1", "shop-2"}),
        (PodTerm("zone", app("a"), (), app("none")), set()),
    ],
)
def test_namespaces(term: PodTerm, wanted: set[str] | None) -> None:
    """Its own, those it names, those with these labels, or all."""
    labels = {"own": {}, "shop-1": {"app": "shop"}, "shop-2": {"app": "shop"}}
    assert namespaces_of(term, "own", labels) == (None if wanted is None else frozenset(wanted))


@pytest.mark.parametrize(
    ("selector", "pairs"),
    [
        (None, ()),
        (Selector(), None),
        (app("a", "b"), (("app", "a"), ("app", "b"))),
        (app("a", operator=Operator.NOT_IN), None),
        (Selector((Requirement("x", Operator.EXISTS), Requirement("y", Operator.IN, ("1",)))), (("y", "1"),)),
    ],
)
def test_labels_of_which_a_match_has_one(selector: Selector | None, pairs: object) -> None:
    """An empty list for a selector that matches nobody, None where no list can be given."""
    assert needed_pairs(selector) == pairs


def test_of_a_long_list_of_values_no_labels_are_given() -> None:
    """Each of them would be looked up, for each term and each new pod."""
    few, many = (Selector((Requirement("app", Operator.IN, tuple(map(str, range(n)))),)) for n in (2, 1000))
    assert (needed_pairs(few), needed_pairs(many)) == ((("app", "0"), ("app", "1")), None)


class _Port(int):
    """A port that counts how often it is compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        _Port.times += 1
        return int.__eq__(self, other)

    __hash__ = int.__hash__


def test_ports_are_looked_up() -> None:
    """A pod may have thousands, and so may the one that it is compared with."""
    ours, theirs = (tuple(HostPort(_Port(n), ip=ip) for n in range(1, 200)) for ip in ("1.1.1.1", "1.1.1.2"))
    _Port.times = 0
    assert not PortUsers(ours).holds(pod_traits(ports=theirs), {})
    assert _Port.times < 2000
