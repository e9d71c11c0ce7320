"""Objects of all kinds read alike, and which of one name counts."""

from __future__ import annotations

from queue_objects import ours, quota, volcanos

from kube.dialects.queues.dialect import QueueDialect
from kube.dialects.queues.reading import AnyQueue, by_namespace, dialect_of, in_force, read
from kube.objects import PodGroup


def wheres(*sources: AnyQueue) -> dict[str, str]:
    return {name: each.where for name, each in in_force(map(read, sources)).items()}


def test_each_kind() -> None:
    """Its own words for where it is, and its queue."""
    for source, dialect in ((ours(), QueueDialect.SUBLET), (volcanos(), QueueDialect.VOLCANO)):
        assert dialect_of(source) is dialect and read(source).name == "research"
    found = read(quota(namespace="kube-system", annotations={"namespaces": '["a"]'}))
    assert (found.dialect, found.namespaces, found.problem) == (QueueDialect.ELASTIC_QUOTA, ("a",), "")
    assert dialect_of(PodGroup()) is None


def test_what_cannot_be_read_is_a_problem() -> None:
    found = read(ours(weight=0))
    assert found.queue is None and found.problem.startswith("Queue research: spec.weight")
    assert read(volcanos("root")).queue is None and read(volcanos("root")).problem == ""


def test_one_of_a_name_counts() -> None:
    """Ours, then Volcano's, then the oldest ElasticQuota; one that cannot be read never."""
    old, new = quota(namespace="b", created=2020), quota(namespace="a", created=2021)
    assert wheres(new, old, volcanos(), ours()) == {"research": "Queue research"}
    assert wheres(new, old, volcanos()) == {"research": "Queue.scheduling.volcano.sh research"}
    assert wheres(new, old) == {"research": "ElasticQuota b/research"}
    assert wheres(new, ours(weight=0)) == {"research": "ElasticQuota a/research"}
    system = quota("koordinator-default-quota", "kube-system")
    assert wheres(system) == {"default": "ElasticQuota kube-system/koordinator-default-quota"}
    assert wheres(system, ours("default")) == {"default": "Queue default"}


def test_whose_quota_has_a_name() -> None:
    """The system's, then that of the namespace of its name: whoever has another namespace takes neither from them."""
    squat, own = quota("team", "evil", created=2000), quota("team", "team", created=2001)
    system = quota("team", "koordinator-system", created=2002)
    assert wheres(squat, own) == {"team": "ElasticQuota team/team"}
    assert wheres(squat, own, system) == {"team": "ElasticQuota koordinator-system/team"}
    for name in ("default", "koordinator-default-quota"):
        found = read(quota(name, "evil"))
        assert found.queue is None and "is the queue of all who name none (write it in kube-system" in found.problem


def test_a_tenants_quota_lists_its_own_namespace_alone() -> None:
    """The kind is namespaced, and handed to tenants: nobody else's pods are governed by what one writes."""
    found = read(quota("mine", "evil", annotations={"namespaces": '["evil","b"]'}))
    assert found.queue is not None and found.namespaces == ("evil",)
    assert "pods of other namespaces are not in it; write the quota in kube-system" in found.unheard
    assert read(quota("mine", "evil", annotations={"namespaces": '["evil"]'})).unheard == ""


def test_queues_of_namespaces() -> None:
    """A quota of the namespace's own name comes first, then the first by name that lists it."""
    listing = [quota(name, "kube-system", annotations={"namespaces": '["a","b"]'}) for name in ("y", "x")]
    own = quota("b", "b")
    found = by_namespace(in_force(map(read, [*listing, own, ours("c"), quota("c", "d")])).values())
    assert found == {"a": "x", "b": "b"}
