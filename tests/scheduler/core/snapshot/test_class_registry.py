"""Who is in the registry, and whose terms may concern a pod."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import pod

from model.pod.affinity import Affinity, PodTerm
from model.selector import Operator, Requirement, Selector
from scheduler.core.snapshot.class_registry import ClassRegistry
from scheduler.core.snapshot.podclass import pod_traits_of

ANY = Selector()
WEB = Selector((Requirement("app", Operator.IN, ("web", "db")),))
LABELLED = Selector((Requirement("app", Operator.EXISTS),))

# a resident's term, and the namespaces in which a pod `app: web` is concerned by it
TERMS: dict[str, tuple[PodTerm, list[str]]] = {
    "its own namespace": (PodTerm("zone", WEB), ["mine"]),
    "its own namespace, by another operator": (PodTerm("zone", LABELLED), ["mine"]),
    "listed namespaces": (PodTerm("zone", WEB, ("a", "b")), ["a", "b"]),
    "listed namespaces, everybody in them": (PodTerm("zone", ANY, ("a", "b")), ["a", "b"]),
    "namespaces by label": (PodTerm("zone", WEB, (), LABELLED), ["a", "b", "mine", "other"]),
    "both": (PodTerm("zone", LABELLED, ("a",), ANY), ["a", "b", "mine", "other"]),
    "nobody": (PodTerm("zone", None, ("a",)), []),
}


def resident(term: PodTerm, **more: Any) -> Any:
    return pod_traits_of(pod("r", namespace="mine", affinity=Affinity(anti_pods=(term,)), **more))


@pytest.mark.parametrize(("term", "concerned"), TERMS.values(), ids=TERMS)
def test_terms_are_looked_up_where_they_may_see(term: PodTerm, concerned: list[str]) -> None:
    """Terms of one namespace cost the pods of others nothing."""
    registry = ClassRegistry()
    registry.number(resident(term))
    asking = {
        space: pod_traits_of(pod("p", namespace=space, labels={"app": "web"})) for space in ("a", "b", "mine", "other")
    }
    assert [space for space, pod_traits in asking.items() if registry.terms_about(pod_traits)] == concerned
    assert all(len(registry.terms_about(asking[space])) == 1 for space in concerned)
    assert registry.terms_about(pod_traits_of(pod("q", namespace="a", labels={"tier": "x"}))) == tuple(
        held for held in registry.terms_about(asking["a"]) if held.term.selector == ANY
    )


class _Name(str):
    """A name that counts how often it is looked up."""

    times = 0

    def __hash__(self) -> int:
        _Name.times += 1
        return str.__hash__(self)


MANY = Selector((Requirement("app", Operator.IN, (*(f"v{i}" for i in range(50)), "web")),))
MORE = Selector((Requirement("app", Operator.IN, (*(f"v{i}" for i in range(500)), "web")),))


@pytest.mark.parametrize("selector", [MANY, MORE], ids=("many labels", "more"))
@pytest.mark.parametrize("spaces", [50, 500])
def test_lists_of_a_term_are_not_multiplied(selector: Selector, spaces: int) -> None:
    """A term that lists namespaces and labels by the hundred costs by their sum, and is found all the same."""
    registry = ClassRegistry()
    term = PodTerm("zone", selector, (*(_Name(f"s{i}") for i in range(spaces)), "theirs"))
    _Name.times = 0
    registry.number(resident(term))
    assert _Name.times < 10 * spaces
    about = [
        len(registry.terms_about(pod_traits_of(pod("p", namespace=space, labels={"app": app}))))
        for space, app in (("theirs", "web"), ("theirs", "none"))
    ]
    assert about == [1, 0]
