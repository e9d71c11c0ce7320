"""Owners, finalizers, namespaces and old events."""

import asyncio
import itertools

import pytest

from embedded.apiserver.admission.admitted_writes import AdmittedWrites, NoAdmissionHooks
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.reconciling.event_recorder import trim_events
from embedded.apiserver.registry.resources import Resources

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"


def config_map(name, *owners, block=True, **meta):
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": uid, "blockOwnerDeletion": block}
        for n, uid in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references} | meta}


def owner(api, name="owner"):
    return name, api.post(MAPS, config_map(name))["metadata"]["uid"]


def exists(api, name):
    return api.call("GET", f"{MAPS}/{name}")[0] == 200


def delete(api, name, **options):
    code, _ = api.call("DELETE", f"{MAPS}/{name}", options or None)
    assert code == 200
    api.settle()


def test_dependents_follow_their_owner(api):
    """Through every generation."""
    first = owner(api)
    second = ("child", api.post(MAPS, config_map("child", first))["metadata"]["uid"])
    api.post(MAPS, config_map("grandchild", second))
    delete(api, "owner")
    assert not exists(api, "child") and not exists(api, "grandchild")


def test_a_dependent_with_another_living_owner_stays(api):
    """It only loses the reference."""
    first, second = owner(api, "a"), owner(api, "b")
    api.post(MAPS, config_map("child", first, second))
    delete(api, "a")
    references = api.get(f"{MAPS}/child")["metadata"]["ownerReferences"]
    assert [found["name"] for found in references] == ["b"]


def test_an_object_created_for_owners_that_are_gone_goes_too(api):
    """But one whose owner is of a kind not served here stays: nobody here can know."""
    api.post(MAPS, config_map("late", ("owner", "gone")))
    foreign = config_map("foreign")
    reference = {"apiVersion": "example.com/v1", "kind": "Database", "name": "d", "uid": "elsewhere"}
    foreign["metadata"]["ownerReferences"] = [reference]
    api.post(MAPS, foreign)
    api.settle()
    assert not exists(api, "late") and exists(api, "foreign")


def test_orphans_stay_without_their_owner(api):
    """propagationPolicy=Orphan."""
    api.post(MAPS, config_map("child", owner(api)))
    delete(api, "owner", propagationPolicy="Orphan")
    assert not exists(api, "owner") and exists(api, "child")
    assert "ownerReferences" not in api.get(f"{MAPS}/child")["metadata"]


def test_foreground_deletion_waits_for_blocking_dependents(api):
    """The owner goes last."""
    api.post(MAPS, config_map("child", owner(api), finalizers=["example.com/hold"]))
    delete(api, "owner", propagationPolicy="Foreground")
    held = api.get(f"{MAPS}/owner")
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    api.patch(f"{MAPS}/child", {"metadata": {"finalizers": None}})
    api.settle()
    assert not exists(api, "owner")


def test_a_namespace_goes_when_it_is_empty(api):
    """Contents first; a pod that its node still runs holds the namespace."""
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    api.post("/api/v1/namespaces/a/configmaps", {"metadata": {"name": "x"}})
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    api.post("/api/v1/namespaces/a/pods", pod)
    code, answer = api.call("DELETE", "/api/v1/namespaces/a")
    assert (code, answer["status"]["phase"]) == (200, "Terminating")
    api.settle()
    assert api.get("/api/v1/namespaces/a/configmaps")["items"] == []
    assert api.get("/api/v1/namespaces/a/pods/p")["metadata"]["deletionTimestamp"]
    assert api.get("/api/v1/namespaces/a")["status"]["phase"] == "Terminating"
    api.call("DELETE", "/api/v1/namespaces/a/pods/p", {"gracePeriodSeconds": 0})
    api.settle()
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_an_empty_namespace_goes_at_once_and_may_come_back(api):
    """Nothing of the old one is left in the new one."""
    for _ in range(2):
        api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
        api.call("DELETE", "/api/v1/namespaces/a")
        api.settle()
        assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_contents_of_a_namespace_go_in_portions(api):
    """Between one portion and the next the server answers."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    for number in range(250):
        api.post("/api/v1/namespaces/a/configmaps", {"metadata": {"name": f"x{number}"}})
    api.settle()
    api.call("DELETE", "/api/v1/namespaces/a")

    async def seen_between() -> list[int]:
        counts = [api.resources.store.count("configmaps")]
        api.controllers.start()
        while counts[-1]:
            await asyncio.sleep(0)
            counts.append(api.resources.store.count("configmaps"))
        await api.controllers.stop()
        return counts

    counts = asyncio.run(seen_between())
    assert max(before - after for before, after in itertools.pairwise(counts)) == 100


def test_a_namespace_is_looked_at_once_however_much_left_it(api):
    """Fifty pods that end at once cost one look at the namespace, and none at the fifty that stay."""

    class Counting(Resources):
        looks = 0

        def decoded(self, rtype, record):
            Counting.looks += 1
            return super().decoded(rtype, record)

    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    pods, spec = "/api/v1/namespaces/a/pods", {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    for number in range(100):
        api.post(pods, {"metadata": {"name": f"p{number}"}, "spec": spec})
    api.call("DELETE", "/api/v1/namespaces/a")
    api.settle()
    resources = Counting(api.resources.store, api.resources.registry, api.clock)
    controllers = Controllers(resources, AdmittedWrites(resources, NoAdmissionHooks()))
    asyncio.run(controllers.settle())
    Counting.looks = 0
    for number in range(50):
        api.call("DELETE", f"{pods}/p{number}", {"gracePeriodSeconds": 0})
    asyncio.run(controllers.settle())
    assert Counting.looks < 10
    for number in range(50, 100):
        api.call("DELETE", f"{pods}/p{number}", {"gracePeriodSeconds": 0})
    asyncio.run(controllers.settle())
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_an_object_that_only_speaks_of_deletion_is_deleted_with_its_namespace(api):
    """What an object says in its data is not what it is."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    api.post("/api/v1/namespaces/a/configmaps", {"metadata": {"name": "x"}, "data": {"deletionTimestamp": "now"}})
    api.call("DELETE", "/api/v1/namespaces/a")
    api.settle()
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_a_custom_namespace_finalizer_is_removed_through_finalize(api):
    """The finalize sub-resource is the only way to change spec.finalizers."""
    namespace = {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/mine"]}}
    created = api.post("/api/v1/namespaces", namespace)
    _, same = api.patch("/api/v1/namespaces/a", {"spec": {"finalizers": []}})
    assert same["spec"] == created["spec"]
    api.call("DELETE", "/api/v1/namespaces/a")
    emptied = api.get("/api/v1/namespaces/a") | {"spec": {"finalizers": []}}
    assert api.call("PUT", "/api/v1/namespaces/a/finalize", emptied)[0] == 200
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def event(name, last="2026-09-21T14:13:20Z"):
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "lastTimestamp": last,
    }


def sweep(api, seconds):
    """Let time pass, and the controllers do what it makes due; the names of the events that are left."""
    api.clock.advance(seconds)
    api.settle()
    api.controllers.sweep()
    return [found["metadata"]["name"] for found in api.get(EVENTS)["items"]]


@pytest.mark.parametrize("last", ["1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_events_are_forgotten_an_hour_after_they_were_last_written(api, last):
    """An event that keeps happening stays, and the times it carries do not matter."""
    for name in ("once", "again"):
        api.post(EVENTS, event(name, last))
    assert sweep(api, 0) == ["again", "once"]
    assert sweep(api, 3500) == ["again", "once"]
    api.patch(f"{EVENTS}/again", {"count": 2})
    assert sweep(api, 0) == ["again", "once"]
    assert sweep(api, 200) == ["again"]
    assert sweep(api, 3500) == []


def test_an_event_that_somebody_deleted_is_not_missed(api):
    """One of the same name is another event."""
    api.post(EVENTS, event("e"))
    assert sweep(api, 3000) == ["e"]
    api.call("DELETE", f"{EVENTS}/e")
    api.post(EVENTS, event("e"))
    assert sweep(api, 0) == ["e"]
    assert sweep(api, 3000) == ["e"]
    api.call("DELETE", f"{EVENTS}/e")
    assert sweep(api, 3000) == []


def test_sweeping_happens_by_itself(api):
    """The controllers call the clean-up once its time has come."""
    api.post(EVENTS, event("old"))
    api.settle()
    api.controllers.sweep()
    assert len(api.get(EVENTS)["items"]) == 1
    api.clock.advance(3700)
    api.controllers.sweep()
    assert api.get(EVENTS)["items"] == []


@pytest.mark.parametrize(("count", "left"), [(5, 5), (6, 6), (9, 4)])
def test_a_namespace_holds_only_so_many_events(api, count, left):
    """The oldest go first, in batches."""
    for number in range(count):
        api.post(EVENTS, event(f"e{9 - number}"))
    trim_events(api.resources, cap=4, slack=2)
    names = [found["metadata"]["name"] for found in api.get(EVENTS)["items"]]
    assert names == sorted(f"e{9 - number}" for number in range(count))[:left]


def test_an_owner_in_another_namespace_is_no_owner(api):
    """The dependent goes, and an event says why."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    api.post("/api/v1/namespaces/a/configmaps", config_map("child", owner(api)))
    api.settle()
    assert api.call("GET", "/api/v1/namespaces/a/configmaps/child")[0] == 404
    (told,) = api.get("/api/v1/namespaces/a/events")["items"]
    assert told["reason"] == "OwnerRefInvalidNamespace" and 'does not exist in namespace "a"' in told["message"]


def test_a_cluster_object_cannot_belong_to_a_namespaced_one(api):
    """It stays, with an event: in which namespace its owner would be, nobody can know."""
    name, uid = owner(api)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
    api.post("/api/v1/nodes", {"metadata": {"name": "n", "ownerReferences": [reference]}})
    api.settle()
    assert api.get("/api/v1/nodes/n")
    (told,) = api.get("/api/v1/namespaces/default/events")["items"]
    assert (told["reason"], told["involvedObject"]["name"]) == ("OwnerRefInvalidNamespace", "n")


@pytest.mark.parametrize("change", [{"name": "other"}, {"uid": "other"}, {"kind": "Secret"}])
def test_an_owner_is_who_the_whole_reference_says(api, change):
    """A name, kind or uid that is somebody else's is nobody's."""
    child = config_map("child", owner(api))
    child["metadata"]["ownerReferences"][0] |= change
    api.post(MAPS, child)
    api.settle()
    assert not exists(api, "child")


def test_an_absent_owner_added_later_counts(api):
    """The reference is looked at when it comes."""
    made = api.post(MAPS, config_map("child", owner(api)))
    gone = made["metadata"]["ownerReferences"][0] | {"name": "gone", "uid": "gone"}
    api.settle()
    api.patch(f"{MAPS}/child", {"metadata": {"ownerReferences": [gone]}})
    api.settle()
    assert not exists(api, "child")


def test_foreground_deletion_waits_through_generations(api):
    """A grandchild that is held holds its grandparent."""
    child = ("child", api.post(MAPS, config_map("child", owner(api)))["metadata"]["uid"])
    api.post(MAPS, config_map("grandchild", child, finalizers=["example.com/hold"]))
    delete(api, "owner", propagationPolicy="Foreground")
    assert exists(api, "owner") and exists(api, "child")
    api.patch(f"{MAPS}/grandchild", {"metadata": {"finalizers": None}})
    api.settle()
    assert not exists(api, "owner") and not exists(api, "child")


def test_a_namespace_that_hangs_says_why(api):
    """Conditions name what is left and which finalizers hold it."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    for name in ("x", "y"):
        api.post("/api/v1/namespaces/a/configmaps", {"metadata": {"name": name, "finalizers": ["example.com/hold"]}})
    api.call("DELETE", "/api/v1/namespaces/a")
    api.settle()
    found = {c["type"]: c for c in api.get("/api/v1/namespaces/a")["status"]["conditions"]}
    remaining, finalizers = found["NamespaceContentRemaining"], found["NamespaceFinalizersRemaining"]
    assert (remaining["status"], remaining["reason"]) == ("True", "SomeResourcesRemain")
    assert remaining["message"] == "Some resources are remaining: configmaps. has 2 resource instances"
    assert finalizers["message"].endswith("finalizers remaining: example.com/hold in 2 resource instances")
    assert found["NamespaceDeletionContentFailure"]["status"] == "False"
    for name in ("x", "y"):
        api.patch(f"/api/v1/namespaces/a/configmaps/{name}", {"metadata": {"finalizers": None}})
    api.settle()
    assert api.call("GET", "/api/v1/namespaces/a")[0] == 404


def test_a_finalizer_of_the_namespaces_own_outlives_its_contents(api):
    """Only "kubernetes" is the server's to remove; what others put there is theirs."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/mine"]}})
    api.call("DELETE", "/api/v1/namespaces/a")
    api.settle()
    held = api.get("/api/v1/namespaces/a")
    assert held["spec"] == {"finalizers": ["example.com/mine"]}
    found = {c["type"]: c["reason"] for c in held["status"]["conditions"]}
    assert found["NamespaceContentRemaining"] == "ContentRemoved"


class Stubborn(Resources):
    """Some objects cannot be deleted for now."""

    stuck = frozenset({"b"})

    def delete(self, rtype, namespace, name, *options):
        if name in self.stuck:
            raise ValueError("not this one")
        return super().delete(rtype, namespace, name, *options)


def test_one_object_that_cannot_be_deleted_does_not_keep_the_others(api):
    """A namespace is emptied but for that one, and goes when it can."""
    resources = Stubborn(api.core.store, api.core.registry, api.clock)
    controllers = Controllers(resources, AdmittedWrites(resources, NoAdmissionHooks()))
    api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    maps = "/api/v1/namespaces/team/configmaps"
    for name in ("a", "b", "c"):
        api.post(maps, {"metadata": {"name": name}})
    api.call("DELETE", "/api/v1/namespaces/team")
    asyncio.run(controllers.settle())
    assert [item["metadata"]["name"] for item in api.get(maps)["items"]] == ["b"]
    resources.stuck = frozenset()
    api.clock.advance(2)
    asyncio.run(controllers.settle())
    assert api.call("GET", "/api/v1/namespaces/team")[0] == 404
