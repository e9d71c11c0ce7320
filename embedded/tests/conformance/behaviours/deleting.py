"""Deletion: preconditions, finalizers, dependents, collections, namespaces."""

from __future__ import annotations

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, config_map

_FINALIZER = "example.com/hold"


def _held(t: Case, name: str = "m") -> None:
    """An object with a finalizer, let go at the end."""
    t.given(CONFIG_MAPS, config_map(name) | {"metadata": {"name": name, "finalizers": [_FINALIZER]}})
    t.defer(lambda: _let_go(t, name))


def _let_go(t: Case, name: str = "m") -> None:
    t.change(CONFIG_MAPS, name, {"metadata": {"finalizers": None}})


def _family(t: Case, **reference: bool) -> None:
    """An `owner` and its dependent `child`."""
    owner = t.given(CONFIG_MAPS, config_map("owner"))
    t.given(CONFIG_MAPS, _child(owner["metadata"]["uid"], **reference))


def _child(uid: str, **reference: bool) -> Object:
    obj = config_map("child")
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} | reference
    ]
    return obj


@behaviour(pages.DELETION, fast=Via.ALL)
def what_does_not_exist_cannot_be_deleted(t: Case) -> None:
    with t.refused("NotFound", 'configmaps "absent" not found'):
        t.delete(CONFIG_MAPS, "absent")


@behaviour(pages.DELETION, Via.RAW)
def a_deletion_answers_with_the_status_of_success(t: Case) -> None:
    uid = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["uid"]
    found = t.raw.call("DELETE", t.path(CONFIG_MAPS, "m"))
    assert (found["kind"], found["status"]) == ("Status", "Success")
    assert found["details"] == {"name": "m", "kind": "configmaps", "uid": uid}


@behaviour(pages.DELETE_OPTIONS, Via.CODE)
def the_uid_of_a_deletion_is_a_precondition(t: Case) -> None:
    uid = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["uid"]
    for precondition, accepted in (("not-its-uid", False), (uid, True)):
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": precondition}}
        if t.by_raw:
            code = t.raw.answer("DELETE", t.path(CONFIG_MAPS, "m"), body=options).code
            assert code == (200 if accepted else 409)
        elif accepted:
            t.delete(CONFIG_MAPS, "m", body=options)
        else:
            with t.refused("Conflict"):
                t.delete(CONFIG_MAPS, "m", body=options)
    assert not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.DELETE_OPTIONS, Via.RAW)
def the_version_of_a_deletion_is_a_precondition(t: Case) -> None:
    old = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["resourceVersion"]
    new = t.change(CONFIG_MAPS, "m", {"data": {"key": "newer"}})["metadata"]["resourceVersion"]
    for version, code in ((old, 409), (new, 200)):
        options = {"preconditions": {"resourceVersion": version}}
        assert t.raw.answer("DELETE", t.path(CONFIG_MAPS, "m"), body=options).code == code


@behaviour(pages.DELETE_OPTIONS, Via.CODE)
def an_unknown_propagation_policy_is_refused(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid", "propagationPolicy"):
        t.delete(CONFIG_MAPS, "m", propagation="Sideways")


@behaviour(pages.FINALIZERS, fast=Via.ALL)
def a_finalizer_holds_a_deleted_object(t: Case) -> None:
    _held(t)
    t.delete(CONFIG_MAPS, "m")
    meta = t.get(CONFIG_MAPS, "m")["metadata"]
    assert meta["deletionTimestamp"] and meta["finalizers"] == [_FINALIZER]


@behaviour(pages.FINALIZERS)
def an_object_goes_with_its_last_finalizer(t: Case) -> None:
    _held(t)
    t.raw.delete(CONFIG_MAPS, t.ns, "m")
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"finalizers": None}})
    assert not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.FINALIZERS, Via.CODE)
def a_deleted_object_takes_no_new_finalizer(t: Case) -> None:
    _held(t)
    t.raw.delete(CONFIG_MAPS, t.ns, "m")
    with t.refused("Invalid", "no new finalizers can be added"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"finalizers": [_FINALIZER, "example.com/more"]}})


@behaviour(pages.FINALIZERS, Via.CODE)
def the_deletion_time_of_an_object_stays(t: Case) -> None:
    _held(t)
    t.raw.delete(CONFIG_MAPS, t.ns, "m")
    before = t.now(CONFIG_MAPS, "m")["metadata"]["deletionTimestamp"]
    t.delete(CONFIG_MAPS, "m")
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}})
    assert t.now(CONFIG_MAPS, "m")["metadata"]["deletionTimestamp"] == before


@behaviour(pages.GARBAGE + "#background-deletion", needs="controllers")
def dependents_follow_their_owner_in_the_background(t: Case) -> None:
    _family(t)
    t.delete(CONFIG_MAPS, "owner", propagation="Background")
    t.gone(CONFIG_MAPS, "owner")
    t.gone(CONFIG_MAPS, "child")


@behaviour(pages.GARBAGE + "#foreground-deletion", needs="controllers")
def an_owner_waits_for_its_dependents_in_the_foreground(t: Case) -> None:
    owner = t.given(CONFIG_MAPS, config_map("owner"))
    child = _child(owner["metadata"]["uid"], blockOwnerDeletion=True)
    child["metadata"]["finalizers"] = [_FINALIZER]
    t.given(CONFIG_MAPS, child)
    t.defer(lambda: _let_go(t, "child"))
    t.delete(CONFIG_MAPS, "owner", propagation="Foreground")
    t.eventually(lambda: "deletionTimestamp" in t.now(CONFIG_MAPS, "child")["metadata"], "the child deleted")
    assert t.now(CONFIG_MAPS, "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
    _let_go(t, "child")
    t.gone(CONFIG_MAPS, "owner")


@behaviour(pages.GARBAGE + "#orphaned-dependents", needs="controllers")
def orphans_lose_their_owner_and_stay(t: Case) -> None:
    _family(t)
    t.delete(CONFIG_MAPS, "owner", propagation="Orphan")
    t.gone(CONFIG_MAPS, "owner")
    assert "ownerReferences" not in t.now(CONFIG_MAPS, "child")["metadata"]


@behaviour(pages.GARBAGE, Via.CODE, needs="controllers")
def an_object_whose_owner_never_was_is_collected(t: Case) -> None:
    t.create(CONFIG_MAPS, _child("00000000-0000-0000-0000-000000000000"))
    t.gone(CONFIG_MAPS, "child")


@behaviour(pages.GARBAGE, Via.CODE, needs="controllers")
def a_dependent_with_another_owner_stays(t: Case) -> None:
    first = t.given(CONFIG_MAPS, config_map("owner"))["metadata"]["uid"]
    second = t.given(CONFIG_MAPS, config_map("keeper"))["metadata"]["uid"]
    child = _child(first)
    keeper = {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": second}
    child["metadata"]["ownerReferences"].append(keeper)
    t.given(CONFIG_MAPS, child)
    t.delete(CONFIG_MAPS, "owner", propagation="Background")
    t.eventually(lambda: t.now(CONFIG_MAPS, "child")["metadata"]["ownerReferences"] == [keeper], "one owner left")


@behaviour(pages.DELETION, Via.ALL)
def a_collection_is_deleted_by_label(t: Case) -> None:
    for name, colour in (("a", "red"), ("b", "red"), ("c", "blue")):
        t.given(CONFIG_MAPS, config_map(name, {"colour": colour}))
    if t.by_raw:
        t.raw.call("DELETE", t.path(CONFIG_MAPS), query={"labelSelector": "colour=red"})
    elif t.by_kubectl:
        t.kubectl("delete", "configmaps", "-l", "colour=red")
    else:
        t.python.typed().delete_collection_namespaced_config_map(t.ns, label_selector="colour=red")
    assert [t.exists(CONFIG_MAPS, name) for name in "abc"] == [False, False, True]


@behaviour(pages.PARAMETERS + "#limit", Via.CODE)
def a_collection_may_be_deleted_in_part(t: Case) -> None:
    for name in ("a", "b"):
        t.given(CONFIG_MAPS, config_map(name, {"of": "list"}))
    if t.by_raw:
        found = t.raw.call("DELETE", t.path(CONFIG_MAPS), query={"labelSelector": "of=list", "limit": 1})
        assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    else:
        t.python.typed().delete_collection_namespaced_config_map(t.ns, label_selector="of=list", limit=1)
    assert [t.exists(CONFIG_MAPS, name) for name in "ab"] == [False, True]


@behaviour(pages.DELETE_OPTIONS, Via.RAW)
def preconditions_hold_for_a_collection_too(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    query = {"labelSelector": "of=list"}
    for precondition in ({"uid": "not-its-uid"}, {"resourceVersion": "1"}):
        answer = t.raw.answer("DELETE", t.path(CONFIG_MAPS), query=query, body={"preconditions": precondition})
        assert (answer.code, answer.json["reason"]) == (409, "Conflict")
    assert t.exists(CONFIG_MAPS, "m")


@behaviour(pages.DELETE_OPTIONS, Via.RAW)
def preconditions_may_stand_in_the_query(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    collection = {"labelSelector": "of=list"}
    for precondition in ({"uid": "not-its-uid"}, {"resourceVersion": "0"}):
        for path, query in ((t.path(CONFIG_MAPS, "m"), {}), (t.path(CONFIG_MAPS), collection)):
            answer = t.raw.answer("DELETE", path, query=query | precondition)
            assert (answer.code, answer.json["reason"]) == (409, "Conflict"), (path, precondition)
    meta = t.now(CONFIG_MAPS, "m")["metadata"]
    its_own = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    assert t.raw.answer("DELETE", t.path(CONFIG_MAPS, "m"), query=its_own).code == 200


@behaviour(pages.VERBS, Via.RAW)
def a_collection_is_deleted_as_of_a_version(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("old", {"of": "list"}))
    version = t.raw.call("GET", t.path(CONFIG_MAPS))["metadata"]["resourceVersion"]
    t.given(CONFIG_MAPS, config_map("new", {"of": "list"}))
    query = {"labelSelector": "of=list", "resourceVersion": version}
    t.raw.call("DELETE", t.path(CONFIG_MAPS), query=query, body={"kind": "DeleteOptions", "apiVersion": "v1"})
    assert [t.exists(CONFIG_MAPS, name) for name in ("old", "new")] == [False, True]


@behaviour(pages.VERBS, Via.RAW)
def a_collection_is_deleted_in_one_namespace(t: Case) -> None:
    for resource in (CONFIG_MAPS, r.NAMESPACES):
        answer = t.raw.answer("DELETE", resource.path(), query={"labelSelector": f"nobody={t.ns}"})
        assert (answer.code, answer.json["reason"]) == (405, "MethodNotAllowed")
    verbs = {each["name"]: each["verbs"] for each in t.raw.call("GET", "/api/v1")["resources"]}
    assert "deletecollection" in verbs["configmaps"] and "deletecollection" not in verbs["namespaces"]


@behaviour(pages.NAMESPACES, needs="controllers", fast=Via.CODE)
def a_deleted_namespace_takes_its_objects_along(t: Case) -> None:
    namespace = t.namespace()
    t.raw.create(CONFIG_MAPS, namespace, config_map("m"))
    t.raw.create(r.PODS, namespace, r.pod("p"))
    t.delete(r.NAMESPACES, namespace)
    t.gone(r.NAMESPACES, namespace)
    assert t.raw.answer("GET", CONFIG_MAPS.path(namespace, "m")).code == 404


@behaviour(pages.ADMISSION + "#namespacelifecycle", needs="controllers")
def nothing_is_created_in_a_namespace_being_deleted(t: Case) -> None:
    namespace = t.namespace()
    held = config_map("m") | {"metadata": {"name": "m", "finalizers": [_FINALIZER]}}
    t.raw.create(CONFIG_MAPS, namespace, held)
    t.defer(lambda: t.raw.patch(CONFIG_MAPS, (namespace, "m"), "merge", {"metadata": {"finalizers": None}}))
    t.raw.delete(r.NAMESPACES, "", namespace)
    with t.refused("Forbidden", "because it is being terminated"):
        t.client.create(CONFIG_MAPS, namespace, config_map("late"))
    found = t.get(r.NAMESPACES, namespace)
    assert found["status"]["phase"] == "Terminating" and found["metadata"]["deletionTimestamp"]


@behaviour(pages.NAMESPACES, Via.CODE, needs="controllers")
def a_namespace_that_cannot_go_says_why(t: Case) -> None:
    namespace = t.namespace()
    held = config_map("m") | {"metadata": {"name": "m", "finalizers": [_FINALIZER]}}
    t.raw.create(CONFIG_MAPS, namespace, held)
    t.defer(lambda: t.raw.patch(CONFIG_MAPS, (namespace, "m"), "merge", {"metadata": {"finalizers": None}}))
    t.delete(r.NAMESPACES, namespace)

    def waiting() -> bool:
        conditions = t.now(r.NAMESPACES, namespace)["status"].get("conditions", [])
        return {"NamespaceContentRemaining", "NamespaceFinalizersRemaining"} <= {
            found["type"] for found in conditions if found["status"] == "True"
        }

    t.eventually(waiting, "conditions that say what remains")
