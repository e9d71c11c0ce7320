"""Server-side apply: who owns which field."""

from __future__ import annotations

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, config_map

_CONFLICTS = pages.APPLY + "#conflicts"
_FIELDS = pages.APPLY + "#field-management"
_MERGING = pages.APPLY + "#merge-strategy"


def _entry(obj: Object, manager: str) -> Object:
    entries: list[Object] = [entry for entry in obj["metadata"]["managedFields"] if entry["manager"] == manager]
    assert len(entries) == 1, obj["metadata"]["managedFields"]
    return entries[0]


def _managers(obj: Object) -> list[str]:
    return sorted(entry["manager"] for entry in obj["metadata"].get("managedFields", []))


@behaviour(pages.APPLY, fast=Via.ALL)
def an_apply_creates_what_is_absent_and_owns_it(t: Case) -> None:
    found = t.apply(CONFIG_MAPS, config_map("m"), "alice")
    assert found["data"] == {"key": "value"}
    entry = _entry(t.now(CONFIG_MAPS, "m"), "alice")
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "v1", "FieldsV1")
    assert entry["fieldsV1"] == {"f:data": {"f:key": {}}} and entry["time"]


@behaviour(pages.APPLY, Via.RAW)
def an_apply_that_creates_answers_201(t: Case) -> None:
    headers, query = {"Content-Type": "application/apply-patch+yaml"}, {"field_manager": "alice"}
    codes = [
        t.raw.answer("PATCH", t.path(CONFIG_MAPS, "m"), body=config_map("m"), headers=headers, query=query).code
        for _ in range(2)
    ]
    assert codes == [201, 200]


@behaviour(pages.APPLY, Via.RAW)
def an_apply_may_be_yaml(t: Case) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  key: from yaml\n"
    found = t.raw.patch(CONFIG_MAPS, (t.ns, "m"), "apply", body, field_manager="alice")
    assert found["data"] == {"key": "from yaml"}


@behaviour(pages.APPLY, Via.CODE)
def an_apply_needs_a_manager(t: Case) -> None:
    with t.refused("Invalid", "fieldManager"):
        t.client.patch(CONFIG_MAPS, (t.ns, "m"), "apply", config_map("m"))


@behaviour(pages.APPLY)
def the_same_apply_again_changes_nothing(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    before = t.now(CONFIG_MAPS, "m")
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(_MERGING)
def a_field_no_longer_applied_is_removed(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m", a="1", b="2"), "alice")
    t.apply(CONFIG_MAPS, config_map("m", a="1"), "alice")
    assert t.now(CONFIG_MAPS, "m")["data"] == {"a": "1"}


@behaviour(_MERGING, Via.CODE)
def what_others_own_is_left_alone(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m", a="1"), "alice")
    t.apply(CONFIG_MAPS, config_map("m", b="2"), "bob")
    t.apply(CONFIG_MAPS, config_map("m", c="3"), "alice")
    found = t.now(CONFIG_MAPS, "m")
    assert found["data"] == {"b": "2", "c": "3"} and _managers(found) == ["alice", "bob"]


@behaviour(_CONFLICTS, fast=Via.ALL)
def a_field_of_another_manager_conflicts(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    with t.refused("Conflict", "conflict", "alice", ".data.key"):
        t.apply(CONFIG_MAPS, config_map("m", key="mine"), "bob")
    assert t.now(CONFIG_MAPS, "m")["data"] == {"key": "value"}


@behaviour(_CONFLICTS, Via.CODE)
def a_conflict_names_manager_and_field_in_its_causes(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    with t.refused("Conflict") as seen:
        t.apply(CONFIG_MAPS, config_map("m", key="mine"), "bob")
    assert seen[0].causes == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.key"}
    ]


@behaviour(_CONFLICTS)
def force_takes_the_field_over(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    t.apply(CONFIG_MAPS, config_map("m", key="mine"), "bob", force=True)
    found = t.now(CONFIG_MAPS, "m")
    assert found["data"] == {"key": "mine"} and _managers(found) == ["bob"]


@behaviour(_CONFLICTS, Via.CODE)
def the_same_value_is_owned_together(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    t.apply(CONFIG_MAPS, config_map("m"), "bob")
    found = t.now(CONFIG_MAPS, "m")
    assert _managers(found) == ["alice", "bob"]
    assert _entry(found, "alice")["fieldsV1"] == _entry(found, "bob")["fieldsV1"]


@behaviour(pages.APPLY + "#transferring-ownership", Via.CODE)
def what_two_own_stays_until_both_let_go(t: Case) -> None:
    for manager in ("alice", "bob"):
        t.apply(
            CONFIG_MAPS, config_map("m", key="value", of=manager) | {"data": {"key": "value", manager: "x"}}, manager
        )
    t.apply(CONFIG_MAPS, config_map("m", alice="x"), "alice")
    assert t.now(CONFIG_MAPS, "m")["data"]["key"] == "value"
    t.apply(CONFIG_MAPS, config_map("m", bob="x"), "bob")
    assert "key" not in t.now(CONFIG_MAPS, "m")["data"]


@behaviour(_FIELDS, Via.CODE)
def a_plain_update_takes_ownership_without_conflict(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    t.patch(CONFIG_MAPS, "m", "merge", {"data": {"key": "changed"}}, field_manager="carol")
    found = t.now(CONFIG_MAPS, "m")
    entry = _entry(found, "carol")
    assert (entry["operation"], entry["fieldsV1"]) == ("Update", {"f:data": {"f:key": {}}})
    with t.refused("Conflict", "carol"):
        t.apply(CONFIG_MAPS, config_map("m", key="back"), "alice")


@behaviour(_MERGING, Via.CODE)
def list_items_with_keys_are_owned_one_by_one(t: Case) -> None:
    def with_port(number: int) -> Object:
        ports = [{"name": f"p{number}", "port": number, "protocol": "TCP"}]
        return r.SERVICES.object("s", spec={"ports": ports})

    t.apply(r.SERVICES, with_port(80), "alice")
    t.apply(r.SERVICES, with_port(81), "bob")
    assert sorted(port["port"] for port in t.now(r.SERVICES, "s")["spec"]["ports"]) == [80, 81]
    fields = _entry(t.now(r.SERVICES, "s"), "bob")["fieldsV1"]["f:spec"]["f:ports"]
    assert [key for key in fields if key != "."] == ['k:{"port":81,"protocol":"TCP"}']


@behaviour(_MERGING, Via.CODE)
def set_items_are_owned_one_by_one(t: Case) -> None:
    def held(by: str) -> Object:
        return CONFIG_MAPS.object("m") | {"metadata": {"name": "m", "finalizers": [f"example.com/{by}"]}}

    t.apply(CONFIG_MAPS, held("a"), "alice")
    t.defer(lambda: t.change(CONFIG_MAPS, "m", {"metadata": {"finalizers": None}}))
    t.apply(CONFIG_MAPS, held("b"), "bob")
    assert sorted(t.now(CONFIG_MAPS, "m")["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]


@behaviour(_MERGING, Via.CODE)
def an_atomic_list_is_owned_whole(t: Case) -> None:
    def tolerating(key: str) -> Object:
        spec = r.pod_spec(restartPolicy="Never", tolerations=[{"key": key, "operator": "Exists"}])
        return r.cron_job("c", jobTemplate={"spec": {"template": {"spec": spec}}})

    t.apply(r.CRON_JOBS, tolerating("a"), "alice")
    with t.refused("Conflict", "tolerations"):
        t.apply(r.CRON_JOBS, tolerating("b"), "bob")


@behaviour(pages.APPLY + "#custom-resources-and-server-side-apply", Via.ALL)
def lists_of_custom_objects_merge_as_their_schema_says(t: Case) -> None:
    item = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "v": {"type": "integer"}}}
    parts = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}
    widgets = t.custom({"type": "object", "properties": {"parts": parts}})
    for manager, part in (("alice", "a"), ("bob", "b")):
        t.apply(widgets, widgets.object("w", spec={"parts": [{"id": part, "v": 1}]}), manager)
    assert sorted(part["id"] for part in t.now(widgets, "w")["spec"]["parts"]) == ["a", "b"]


@behaviour(pages.APPLY, Via.CODE)
def an_applied_status_is_owned_apart(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    condition = {"type": "example.com/gate", "status": "True"}
    body = r.PODS.object("p", status={"conditions": [condition]})
    t.patch(r.PODS, "p", "apply", body, subresource="status", field_manager="alice")
    entry = _entry(t.now(r.PODS, "p"), "alice")
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")


@behaviour(pages.DRY_RUN, Via.ALL)
def a_dry_apply_changes_nothing(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    before = t.now(CONFIG_MAPS, "m")
    assert t.apply(CONFIG_MAPS, config_map("m", key="dry"), "alice", dry_run="All")["data"] == {"key": "dry"}
    assert t.now(CONFIG_MAPS, "m") == before


@behaviour(pages.APPLY + "#clearing-managedfields", Via.CODE)
def managed_fields_are_cleared_by_an_empty_entry(t: Case) -> None:
    t.apply(CONFIG_MAPS, config_map("m"), "alice")
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in t.now(CONFIG_MAPS, "m")["metadata"]


@behaviour(pages.APPLY, Via.RAW)
def force_is_for_applies_alone(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid", "force"):
        t.raw.patch(CONFIG_MAPS, (t.ns, "m"), "merge", {"data": {"a": "b"}}, force=True, field_manager="alice")


@behaviour(pages.APPLY, Via.RAW)
def an_apply_must_not_bring_managed_fields(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["managedFields"] = [{"manager": "alice", "operation": "Apply", "apiVersion": "v1"}]
    with t.refused("BadRequest", "managedFields must be nil"):
        t.raw.apply(CONFIG_MAPS, t.ns, obj, "alice")


@behaviour(pages.APPLY, Via.CODE)
def an_apply_may_carry_a_version_as_precondition(t: Case) -> None:
    old = t.apply(CONFIG_MAPS, config_map("m"), "alice")["metadata"]["resourceVersion"]
    t.change(CONFIG_MAPS, "m", {"data": {"other": "x"}})
    late = config_map("m", key="late")
    late["metadata"]["resourceVersion"] = old
    with t.refused("Conflict"):
        t.apply(CONFIG_MAPS, late, "alice")


@behaviour(pages.APPLY + "#transferring-ownership", Via.CODE)
def who_scales_owns_the_replicas_through_the_scale(t: Case) -> None:
    deployment = r.workload(r.DEPLOYMENTS, "w", replicas=1)
    t.raw.apply(r.DEPLOYMENTS, t.ns, deployment, "m")
    merge = {"Content-Type": "application/merge-patch+json"}
    query, body = {"fieldManager": "scaler"}, {"spec": {"replicas": 3}}
    t.raw.call("PATCH", t.path(r.DEPLOYMENTS, "w", "scale"), body=body, headers=merge, query=query)
    entries = t.now(r.DEPLOYMENTS, "w")["metadata"]["managedFields"]
    (found,) = [entry for entry in entries if entry["manager"] == "scaler"]
    assert (found["subresource"], found["operation"], found["apiVersion"]) == ("scale", "Update", "apps/v1")
    assert found["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    with t.refused("Conflict", 'conflict with "scaler" with subresource "scale"', ".spec.replicas"):
        t.apply(r.DEPLOYMENTS, deployment, "m")


@behaviour(pages.APPLY, Via.RAW)
def a_configuration_may_leave_out_whom_its_path_names(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    apply = {"headers": {"Content-Type": "application/apply-patch+yaml"}, "query": {"fieldManager": "m"}}
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"mine": "1"}}
    for body in (bare, bare | {"metadata": None}):
        found = t.raw.call("PATCH", t.path(CONFIG_MAPS, "m"), body=body, **apply)
        assert found["data"] == {"key": "value", "mine": "1"}
    answer = t.raw.answer("PATCH", t.path(CONFIG_MAPS, "new"), body=bare, **apply)
    assert (answer.code, "name must be provided" in answer.json["message"]) == (400, True)


@behaviour(pages.APPLY, Via.RAW)
def an_apply_that_creates_asks_for_no_version(t: Case) -> None:
    apply = {"headers": {"Content-Type": "application/apply-patch+yaml"}, "query": {"fieldManager": "m"}}
    body = CONFIG_MAPS.object("m", data={"mine": "1"})
    body["metadata"]["resourceVersion"] = "1"
    assert t.raw.answer("PATCH", t.path(CONFIG_MAPS, "m"), body=body, **apply).code == 201
