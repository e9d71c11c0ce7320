"""Patches of all types."""

from __future__ import annotations

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.resources import CONFIG_MAPS, CRON_JOBS, Object, config_map, container


def _pod_template(t: Case, **spec: object) -> None:
    """A CronJob `c`: its template may change at any time, so every rule of merging shows in it."""
    template = {"spec": r.pod_spec(restartPolicy="Never", **spec)}
    t.given(CRON_JOBS, r.cron_job("c", jobTemplate={"spec": {"template": template}}))


def _patch_template(t: Case, spec: Object, kind: str = "strategic") -> Object:
    body = {"spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}}}
    found = t.patch(CRON_JOBS, "c", kind, body)
    merged: Object = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return merged


def _names(spec: Object, key: str = "containers") -> list[str]:
    return [item["name"] for item in spec[key]]


@behaviour(pages.PATCHES, fast=Via.ALL)
def a_merge_patch_adds_changes_and_removes_by_null(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", a="1", b="2"))
    found = t.patch(CONFIG_MAPS, "m", "merge", {"data": {"a": "9", "b": None, "c": "3"}})
    assert found["data"] == {"a": "9", "c": "3"}


@behaviour(pages.MERGE_PATCH)
def a_merge_patch_replaces_whole_lists(t: Case) -> None:
    _pod_template(t, containers=[container("a"), container("b")])
    assert _names(_patch_template(t, {"containers": [container("c")]}, "merge")) == ["c"]


@behaviour(pages.MERGE_PATCH, fast=Via.ALL)
def a_strategic_patch_merges_containers_by_name(t: Case) -> None:
    _pod_template(t, containers=[container("a"), container("b")])
    found = _patch_template(t, {"containers": [{"name": "b", "image": "new"}]})
    assert {item["name"]: item["image"] for item in found["containers"]} == {"a": "registry.example/app:1", "b": "new"}


@behaviour(pages.MERGE_PATCH)
def a_strategic_patch_adds_what_has_no_counterpart(t: Case) -> None:
    _pod_template(t, containers=[container("a")])
    assert sorted(_names(_patch_template(t, {"containers": [container("b")]}))) == ["a", "b"]


@behaviour(pages.MERGE_PATCH)
def a_strategic_patch_replaces_lists_without_a_key(t: Case) -> None:
    _pod_template(t, tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}])
    found = _patch_template(t, {"tolerations": [{"key": "c", "operator": "Exists"}]})
    assert [item["key"] for item in found["tolerations"]] == ["c"]


@behaviour(pages.MERGE_PATCH)
def a_strategic_patch_deletes_an_item_by_directive(t: Case) -> None:
    _pod_template(t, containers=[container("a"), container("b")])
    assert _names(_patch_template(t, {"containers": [{"$patch": "delete", "name": "a"}]})) == ["b"]


@behaviour(pages.MERGE_PATCH, Via.CODE)
def a_strategic_patch_replaces_a_map_by_directive(t: Case) -> None:
    _pod_template(t, nodeSelector={"a": "1", "b": "2"})
    found = _patch_template(t, {"nodeSelector": {"$patch": "replace", "c": "3"}})
    assert found["nodeSelector"] == {"c": "3"}


@behaviour(pages.MERGE_PATCH, Via.CODE)
def a_strategic_patch_retains_only_the_keys_it_names(t: Case) -> None:
    _pod_template(t, volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])
    volume = {"name": "v", "configMap": {"name": "m"}, "$retainKeys": ["name", "configMap"]}
    found = _patch_template(t, {"volumes": [volume]})
    assert "emptyDir" not in found["volumes"][0] and found["volumes"][0]["configMap"]["name"] == "m"


@behaviour(pages.MERGE_PATCH, Via.CODE)
def a_strategic_patch_orders_items_by_directive(t: Case) -> None:
    _pod_template(t, containers=[container("a"), container("b")])
    order = [{"name": "b"}, {"name": "a"}]
    found = _patch_template(t, {"$setElementOrder/containers": order, "containers": [{"name": "a", "image": "new"}]})
    assert _names(found) == ["b", "a"]


@behaviour(pages.MERGE_PATCH, Via.CODE)
def a_strategic_patch_takes_values_out_of_a_plain_list(t: Case) -> None:
    held = ["example.com/a", "example.com/b"]
    t.given(CONFIG_MAPS, config_map("m") | {"metadata": {"name": "m", "finalizers": held}})
    t.defer(lambda: t.change(CONFIG_MAPS, "m", {"metadata": {"finalizers": None}}))
    body = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    assert t.patch(CONFIG_MAPS, "m", "strategic", body)["metadata"]["finalizers"] == ["example.com/b"]


@behaviour(pages.MERGE_PATCH, Via.CODE)
def a_strategic_patch_removes_a_field_by_null(t: Case) -> None:
    _pod_template(t, priorityClassName="low", nodeSelector={"a": "1"})
    found = _patch_template(t, {"priorityClassName": None, "nodeSelector": {"a": None, "b": "2"}})
    assert "priorityClassName" not in found and found["nodeSelector"] == {"b": "2"}


@behaviour(pages.PATCHES, fast=Via.ALL)
def a_json_patch_adds_replaces_and_removes(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", a="1", b="2"))
    body = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "remove", "path": "/data/b"},
    ]
    assert t.patch(CONFIG_MAPS, "m", "json", body)["data"] == {"a": "9", "c": "3"}


@behaviour(pages.PATCHES, Via.CODE)
def a_json_patch_moves_and_copies(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", a="1"))
    body = [{"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "move", "from": "/data/a", "path": "/data/c"}]
    assert t.patch(CONFIG_MAPS, "m", "json", body)["data"] == {"b": "1", "c": "1"}


@behaviour(pages.PATCHES, Via.CODE)
def a_json_patch_path_escapes_slashes(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"example.com/a": "1"}))
    body = [{"op": "replace", "path": "/metadata/labels/example.com~1a", "value": "2"}]
    assert t.patch(CONFIG_MAPS, "m", "json", body)["metadata"]["labels"] == {"example.com/a": "2"}


@behaviour(pages.PATCHES)
def a_json_patch_whose_test_fails_changes_nothing(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid"):
        body = [{"op": "replace", "path": "/data/key", "value": "x"}, {"op": "test", "path": "/data/key", "value": "y"}]
        t.patch(CONFIG_MAPS, "m", "json", body)
    assert t.now(CONFIG_MAPS, "m")["data"] == {"key": "value"}


@behaviour(pages.PATCHES, Via.CODE)
def a_json_patch_of_an_absent_path_is_invalid(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid"):
        t.patch(CONFIG_MAPS, "m", "json", [{"op": "remove", "path": "/data/absent"}])


@behaviour(pages.PATCHES, Via.RAW)
def a_malformed_patch_is_a_bad_request(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    for kind, body in (("merge", "{"), ("strategic", "[]"), ("json", '{"op": "add"}')):
        with t.refused("BadRequest"):
            t.raw.patch(CONFIG_MAPS, (t.ns, "m"), kind, body)


@behaviour(pages.PATCHES, Via.RAW)
def an_unknown_patch_type_is_unsupported(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    answer = t.raw.answer("PATCH", t.path(CONFIG_MAPS, "m"), body={})
    assert (answer.code, answer.json["reason"]) == (415, "UnsupportedMediaType")


@behaviour(pages.CUSTOM)
def a_custom_object_has_no_strategic_patch(t: Case) -> None:
    widgets = t.custom({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    t.given(widgets, widgets.object("w", spec={"a": 1}))
    with t.refused("UnsupportedMediaType", "application/merge-patch+json"):
        t.patch(widgets, "w", "strategic", {"spec": {"a": 2}})
    assert t.now(widgets, "w")["spec"] == {"a": 1}


@behaviour(pages.PATCHES)
def what_does_not_exist_cannot_be_patched(t: Case) -> None:
    with t.refused("NotFound", 'configmaps "absent" not found'):
        t.patch(CONFIG_MAPS, "absent", "merge", {"data": {"a": "b"}})


@behaviour(pages.PATCHES, Via.CODE)
def a_patch_cannot_rename(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("BadRequest", "name"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"name": "other"}})


@behaviour(pages.PATCHES)
def a_patch_may_carry_a_version_as_precondition(t: Case) -> None:
    old = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["resourceVersion"]
    new = t.change(CONFIG_MAPS, "m", {"data": {"key": "newer"}})["metadata"]["resourceVersion"]
    with t.refused("Conflict"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"resourceVersion": old}, "data": {"key": "late"}})
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"resourceVersion": new}, "data": {"key": "in time"}})


@behaviour(pages.PATCHES)
def a_patch_that_makes_an_object_invalid_is_refused(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid", "metadata.labels"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"labels": {"a": "no good!"}}})


@behaviour(pages.PATCHES, Via.CODE)
def a_patch_that_changes_nothing_keeps_the_version(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["resourceVersion"]
    for kind in ("merge", "strategic"):
        assert t.patch(CONFIG_MAPS, "m", kind, {"data": {"key": "value"}})["metadata"]["resourceVersion"] == before


@behaviour(pages.CONVENTIONS + "#spec-and-status", fast=Via.ALL)
def a_patch_of_the_status_changes_the_status_alone(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    body = {"spec": {"activeDeadlineSeconds": 7}, "status": {"phase": "Running", "message": "seen"}}
    t.patch(r.PODS, "p", "merge", body, subresource="status")
    found = t.now(r.PODS, "p")
    assert (found["status"]["phase"], found["status"]["message"]) == ("Running", "seen")
    assert "activeDeadlineSeconds" not in found["spec"]


@behaviour(pages.CONVENTIONS + "#spec-and-status", Via.CODE)
def a_write_of_the_object_leaves_the_status(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    t.patch(r.PODS, "p", "merge", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}})
    found = t.now(r.PODS, "p")
    assert found["status"]["phase"] == "Pending" and found["metadata"]["labels"] == {"a": "b"}


@behaviour(pages.CONVENTIONS + "#spec-and-status", Via.CODE)
def a_replaced_status_leaves_the_spec(t: Case) -> None:
    name = t.node()

    def replaced() -> bool:
        """Unless the cluster's controllers were first."""
        obj = t.now(r.NODES, name)
        obj["spec"]["unschedulable"] = True
        obj["status"]["capacity"]["example.com/gpu"] = "2"
        try:
            t.replace(r.NODES, obj, subresource="status")
        except Refused as refused:
            if refused.reason != "Conflict":
                raise
            return False
        return True

    t.eventually(replaced, "the status replaced")
    found = t.now(r.NODES, name)
    assert found["status"]["capacity"]["example.com/gpu"] == "2" and "unschedulable" not in found["spec"]


@behaviour(pages.MERGE_PATCH, Via.CODE)
def conditions_of_a_status_merge_by_type(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    for kind in ("Ready", "example.com/gate"):
        body = {"status": {"conditions": [{"type": kind, "status": "False"}]}}
        t.patch(r.PODS, "p", "strategic", body, subresource="status")
    types = [condition["type"] for condition in t.now(r.PODS, "p")["status"]["conditions"]]
    assert sorted(types) == ["Ready", "example.com/gate"]
