"""Who is where, as other pods' terms ask: nothing until somebody asks, then always what the ledger says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scheduler_builders import node, pod

from model.pod.affinity import Affinity, PodTerm
from model.pod.pod import Pod
from model.selector import Operator, Requirement, Selector
from scheduler.core.ledger.ledger import ChargeChange, Ledger, charge_of
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.pod_queries import Pods
from scheduler.core.snapshot.snapshot import ClusterSnapshot, take

APP = Selector((Requirement("app", Operator.IN, ("a",)),))
SHY = Affinity(anti_pods=(PodTerm("zone", APP),))


def cluster(*names: str) -> ClusterSnapshot:
    return take({name: node(name) for name in names}, {})


def put(ledger: Ledger, resident: Pod) -> None:
    ledger.apply([ChargeChange(resident.uid, charge_of(resident))])


def counts(index: PodIndex) -> list[int]:
    """Pods of app=a by row."""
    return index.count(Pods(APP)).tolist()


def test_it_lives_once_somebody_has_terms() -> None:
    """A resident with terms wakes it, and so does the first to ask."""
    ledger = Ledger()
    index = LivePodIndex(ledger)
    put(ledger, pod("plain", node_name="n1"))
    assert not index.live
    put(ledger, pod("shy", node_name="n1", affinity=SHY))
    assert index.live
    ledger.forget("uid-shy")
    assert not index.live
    index.pod_index(cluster("n1"))
    assert index.live


def test_what_is_given_is_the_callers_own() -> None:
    """What it tries there changes nothing for the next."""
    ledger = Ledger()
    put(ledger, pod("a", node_name="n1", labels={"app": "a"}))
    index, seen = LivePodIndex(ledger), cluster("n1", "n2")
    mine = index.pod_index(seen)
    charge = ledger.charge("uid-a")
    assert charge is not None
    mine.put(charge.pod_traits, 1, 5)
    assert counts(mine) == [1, 5]
    assert counts(index.pod_index(seen)) == [1, 0]


def test_forgotten_is_counted_again_when_asked() -> None:
    """Without what moved meanwhile being counted twice."""
    ledger = Ledger()
    index, seen = LivePodIndex(ledger), cluster("n1")
    put(ledger, pod("a", node_name="n1", labels={"app": "a"}))
    assert counts(index.pod_index(seen)) == [1]
    index.forget()
    put(ledger, pod("b", node_name="n1", labels={"app": "a"}))
    assert not index.live
    assert counts(index.pod_index(seen)) == [2]


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["n1", "n2", "n3", ""])),
        st.lists(st.sampled_from(["n1", "n2", "n3"]), min_size=1, unique=True),
    ),
    max_size=20,
)


@given(steps)
def test_it_follows_pods_and_nodes(history: list[tuple[str, str] | list[str]]) -> None:
    """Pods come, move and go, and so do nodes; it says what one that is made again says."""
    ledger, names = Ledger(), ["n1", "n2"]
    index = LivePodIndex(ledger)
    for step in history:
        if isinstance(step, list):
            names = step
        else:
            put(ledger, pod(step[0], node_name=step[1], labels={"app": "a"}))
        seen = cluster(*names)
        assert counts(index.pod_index(seen)) == counts(LivePodIndex(ledger).pod_index(seen))
