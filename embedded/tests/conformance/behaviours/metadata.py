"""Names, labels, versions and the other metadata that every object has."""

from __future__ import annotations

import re

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Resource, config_map

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@behaviour(pages.OBJECT_META, fast=Via.ALL)
def a_created_object_has_a_uid_a_version_and_a_time(t: Case) -> None:
    meta = t.create(CONFIG_MAPS, config_map("m"))["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert meta["resourceVersion"] and meta["namespace"] == t.ns
    assert _TIME.fullmatch(t.now(CONFIG_MAPS, "m")["metadata"]["creationTimestamp"])


@behaviour(pages.NAMES, fast=Via.ALL)
def only_one_object_of_a_type_has_a_name(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("AlreadyExists", 'configmaps "m" already exists'):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.NAMES, Via.CODE)
def objects_of_other_types_and_namespaces_may_share_a_name(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    t.create(r.SECRETS, r.SECRETS.object("m"))
    other = t.client.create(CONFIG_MAPS, t.namespace(), config_map("m"))
    assert other["metadata"]["uid"] != t.now(CONFIG_MAPS, "m")["metadata"]["uid"]


@behaviour(pages.NAMES)
def a_name_is_a_dns_subdomain(t: Case) -> None:
    with t.refused("Invalid", "metadata.name", "Bad_Name"):
        t.create(CONFIG_MAPS, config_map("Bad_Name"))


@behaviour(pages.NAMES, Via.CODE)
def a_name_has_at_most_253_characters(t: Case) -> None:
    t.create(CONFIG_MAPS, config_map("a" * 253))
    with t.refused("Invalid", "metadata.name"):
        t.create(CONFIG_MAPS, config_map("a" * 254))


@behaviour(pages.NAMES, Via.CODE)
def a_service_name_is_a_dns_label(t: Case) -> None:
    with t.refused("Invalid", "metadata.name"):
        t.create(r.SERVICES, r.service("a.b"))


@behaviour(pages.NAMES, Via.CODE)
def a_namespace_name_is_a_dns_label(t: Case) -> None:
    with t.refused("Invalid", "metadata.name"):
        t.create(r.NAMESPACES, r.NAMESPACES.object("a.b"))


@behaviour(pages.OBJECT_META, fast=Via.ALL)
def a_generated_name_extends_its_prefix_by_random_letters(t: Case) -> None:
    obj = config_map("") | {"metadata": {"generateName": "made-"}}
    first, second = (t.create(CONFIG_MAPS, obj)["metadata"]["name"] for _ in range(2))
    assert re.fullmatch(r"made-[a-z0-9]{5}", first) and first != second


@behaviour(pages.OBJECT_META, Via.CODE)
def an_object_needs_a_name_or_a_prefix(t: Case) -> None:
    with t.refused("Invalid", "name or generateName is required"):
        t.create(CONFIG_MAPS, config_map(""))


@behaviour(pages.URIS, Via.RAW)
def the_namespace_of_the_body_is_that_of_the_path(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["namespace"] = "another"
    with t.refused("BadRequest", "namespace"):
        t.create(CONFIG_MAPS, obj)


@behaviour(pages.LABELS, fast=Via.ALL)
def a_label_value_has_letters_digits_and_few_signs(t: Case) -> None:
    with t.refused("Invalid", "metadata.labels", "not valid!"):
        t.create(CONFIG_MAPS, config_map("m", {"app": "not valid!"}))


@behaviour(pages.LABELS, Via.CODE)
def a_label_value_has_at_most_63_characters(t: Case) -> None:
    t.create(CONFIG_MAPS, config_map("fits", {"app": "a" * 63}))
    with t.refused("Invalid", "metadata.labels"):
        t.create(CONFIG_MAPS, config_map("m", {"app": "a" * 64}))


@behaviour(pages.LABELS, Via.CODE)
def a_label_key_has_a_valid_prefix_and_name(t: Case) -> None:
    t.create(CONFIG_MAPS, config_map("fits", {"example.com/part.of_it": ""}))
    for key in ("-begins-badly", "example.com/", "two/slashes/here", "Upper.Case/a b"):
        with t.refused("Invalid", "metadata.labels"):
            t.create(CONFIG_MAPS, config_map("m", {key: "x"}))


@behaviour(pages.ANNOTATIONS, Via.CODE)
def annotations_have_at_most_256_kibibytes_together(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["annotations"] = {"big": "x" * 262_144}
    with t.refused("Invalid", "metadata.annotations", "262144"):
        t.create(CONFIG_MAPS, obj)


@behaviour(pages.ANNOTATIONS, Via.CODE)
def an_annotation_value_may_be_any_text(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["annotations"] = {"example.com/note": 'many words, {"json": true}\nand lines – ü'}
    assert t.create(CONFIG_MAPS, obj)["metadata"]["annotations"] == obj["metadata"]["annotations"]


@behaviour(pages.UPDATES, fast=Via.ALL)
def a_write_from_an_old_version_conflicts(t: Case) -> None:
    old = t.given(CONFIG_MAPS, config_map("m"))
    t.change(CONFIG_MAPS, "m", {"data": {"key": "newer"}})
    with t.refused("Conflict", "the object has been modified"):
        t.replace(CONFIG_MAPS, old | {"data": {"key": "late"}})
    assert t.now(CONFIG_MAPS, "m")["data"] == {"key": "newer"}


@behaviour(pages.UPDATES)
def a_replacement_drops_what_it_does_not_name(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"old": "label"}, a="1", b="2"))
    found = t.replace(CONFIG_MAPS, config_map("m", a="3"))
    assert found["data"] == {"a": "3"} and "labels" not in found["metadata"]


@behaviour(pages.UPDATES, Via.CODE)
def a_replacement_without_version_overwrites(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))
    t.change(CONFIG_MAPS, "m", {"data": {"key": "newer"}})
    after = t.replace(CONFIG_MAPS, config_map("m", key="mine"))
    assert after["data"] == {"key": "mine"} and after["metadata"]["uid"] == before["metadata"]["uid"]


@behaviour(pages.UPDATES, Via.CODE)
def a_lease_must_be_replaced_from_a_version(t: Case) -> None:
    t.given(r.LEASES, r.lease("l"))
    with t.refused("Invalid", "metadata.resourceVersion", "must be specified for an update"):
        t.replace(r.LEASES, r.lease("l"))


@behaviour(pages.UPDATES, Via.ALL)
def what_does_not_exist_cannot_be_replaced(t: Case) -> None:
    with t.refused("NotFound", 'configmaps "absent" not found'):
        t.replace(CONFIG_MAPS, config_map("absent"))


@behaviour(pages.UPDATES, Via.RAW)
def the_name_of_the_body_is_that_of_the_path(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    answer = t.raw.answer("PUT", t.path(CONFIG_MAPS, "m"), body=config_map("other"))
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")


@behaviour(pages.OBJECT_META, Via.CODE)
def the_uid_of_a_replacement_is_a_precondition(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    obj = config_map("m", key="new")
    obj["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"
    with t.refused("Conflict", "UID"):
        t.replace(CONFIG_MAPS, obj)


@behaviour(pages.OBJECT_META, Via.CODE)
def creation_time_and_uid_stay(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))["metadata"]
    body = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "annotations": {"a": "b"}}}
    t.patch(CONFIG_MAPS, "m", "merge", body)
    after = t.now(CONFIG_MAPS, "m")["metadata"]
    assert [after[key] for key in ("uid", "creationTimestamp")] == [before[key] for key in ("uid", "creationTimestamp")]


@behaviour(pages.VERSIONS)
def a_write_that_changes_nothing_keeps_the_version(t: Case) -> None:
    before = t.given(CONFIG_MAPS, config_map("m"))
    after = t.replace(CONFIG_MAPS, before)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


@behaviour(pages.VERSIONS, Via.CODE)
def every_change_gives_a_new_version(t: Case) -> None:
    seen = {t.given(CONFIG_MAPS, config_map("m"))["metadata"]["resourceVersion"]}
    for number in range(3):
        seen.add(t.patch(CONFIG_MAPS, "m", "merge", {"data": {"key": str(number)}})["metadata"]["resourceVersion"])
    assert len(seen) == 4


@behaviour(pages.VERSIONS, Via.RAW)
def an_object_cannot_be_created_with_a_version(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["resourceVersion"] = "1"
    answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=obj)
    assert answer.code >= 400 and "resourceVersion should not be set" in answer.json["message"]


@behaviour(pages.OBJECT_META, Via.CODE)
def the_generation_counts_changes_of_the_wanted_state(t: Case) -> None:
    assert t.given(r.BUDGETS, r.budget("b", "x", minAvailable=1))["metadata"]["generation"] == 1
    labelled = t.patch(r.BUDGETS, "b", "merge", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    assert t.patch(r.BUDGETS, "b", "merge", {"spec": {"minAvailable": 2}})["metadata"]["generation"] == 2


@behaviour(pages.CONVENTIONS, Via.RAW)
def server_set_metadata_of_a_new_object_is_ignored(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    meta = t.create(CONFIG_MAPS, obj)["metadata"]
    assert meta["uid"] != "mine" and not meta["creationTimestamp"].startswith("2001")


@behaviour(pages.VERBS, fast=Via.ALL)
def what_does_not_exist_is_not_found(t: Case) -> None:
    with t.refused("NotFound", 'configmaps "absent" not found'):
        t.get(CONFIG_MAPS, "absent")


@behaviour(pages.STATUS, Via.RAW)
def a_refusal_is_a_status_with_code_reason_and_details(t: Case) -> None:
    answer = t.raw.answer("GET", t.path(r.JOBS, "absent"))
    assert answer.code == 404 and answer.media_type == "application/json"
    expected = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    assert {key: answer.json[key] for key in expected} == expected
    assert answer.json["details"] == {"name": "absent", "group": "batch", "kind": "jobs"}


@behaviour(pages.STATUS, Via.RAW)
def an_invalid_object_lists_each_cause_with_its_field(t: Case) -> None:
    answer = t.raw.answer("POST", t.path(CONFIG_MAPS), body=config_map("Bad", {"a": "not ok!"}))
    assert (answer.code, answer.json["details"]["kind"]) == (422, "ConfigMap")
    causes = {cause["field"]: cause for cause in answer.json["details"]["causes"]}
    assert causes.keys() == {"metadata.name", "metadata.labels"}
    assert causes["metadata.name"]["reason"] == "FieldValueInvalid" and causes["metadata.name"]["message"]


@behaviour(pages.NAMESPACES, fast=Via.ALL)
def nothing_is_created_in_an_absent_namespace(t: Case) -> None:
    with t.refused("NotFound", "no-such-place"):
        t.client.create(CONFIG_MAPS, "no-such-place", config_map("m"))


@behaviour(pages.NAMESPACES, Via.CODE)
def a_namespace_is_labelled_with_its_name(t: Case) -> None:
    found = t.get(r.NAMESPACES, t.ns)
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == t.ns
    assert found["spec"]["finalizers"] == ["kubernetes"] and found["status"]["phase"] == "Active"


@behaviour(pages.NAMESPACES, Via.CODE)
def the_initial_namespaces_exist(t: Case) -> None:
    names = {item["metadata"]["name"] for item in t.list(r.NAMESPACES)}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names


@behaviour(pages.ADMISSION + "#namespacelifecycle", Via.CODE)
def the_default_namespace_cannot_be_deleted(t: Case) -> None:
    with t.refused("Forbidden", "default"):
        t.client.delete(r.NAMESPACES, "", "default", dry_run="All")


@behaviour(pages.OWNERS, Via.CODE)
def only_one_owner_may_be_the_controller(t: Case) -> None:
    obj = config_map("m")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
    obj["metadata"]["ownerReferences"] = [owner | {"name": name, "uid": name * 3} for name in ("a", "b")]
    with t.refused("Invalid", "metadata.ownerReferences"):
        t.create(CONFIG_MAPS, obj)


@behaviour(pages.FINALIZERS, Via.CODE)
def a_finalizer_has_a_qualified_name(t: Case) -> None:
    obj = config_map("m")
    obj["metadata"]["finalizers"] = ["unqualified"]
    with t.refused("Invalid", "metadata.finalizers"):
        t.create(CONFIG_MAPS, obj, dry_run="All")


@behaviour(pages.NAME_LABEL, fast=Via.ALL)
def the_name_label_of_a_namespace_is_its_name(t: Case) -> None:
    label = "kubernetes.io/metadata.name"
    for wanted in ("other", None):
        t.patch(r.NAMESPACES, t.ns, "merge", {"metadata": {"labels": {label: wanted}}})
        assert t.now(r.NAMESPACES, t.ns)["metadata"]["labels"][label] == t.ns
    name = t.namespace({label: "other"})
    assert t.now(r.NAMESPACES, name)["metadata"]["labels"][label] == name


@behaviour(pages.NAMESPACES, Via.RAW)
def a_namespace_has_finalizers_that_somebody_takes_away(t: Case) -> None:
    finalized = {"metadata": {"name": t.ns}, "spec": {"finalizers": ["unqualified"]}}
    path = r.NAMESPACES.path("", t.ns, "finalize")
    answer = t.raw.answer("PUT", path, body=finalized)
    assert (answer.code, "fully qualified" in answer.json["message"]) == (422, True), answer.body
    new = {"metadata": {"name": t.unique()}, "spec": {"finalizers": ["unqualified"]}}
    with t.refused("Invalid", "spec.finalizers"):
        t.raw.create(r.NAMESPACES, "", new, dryRun="All")
    merge = {"Content-Type": "application/merge-patch+json"}
    assert t.raw.answer("PATCH", path, body={}, headers=merge).code == 405
    assert t.now(r.NAMESPACES, t.ns)["spec"]["finalizers"] == ["kubernetes"]


@behaviour(pages.NAMESPACES, Via.RAW)
def a_namespace_terminates_when_it_is_deleted(t: Case) -> None:
    with t.refused("Invalid", "status.Phase", "may only be 'Active'"):
        t.patch(r.NAMESPACES, t.ns, "merge", {"status": {"phase": "Terminating"}}, subresource="status")
    assert t.now(r.NAMESPACES, t.ns)["status"]["phase"] == "Active"


@behaviour(pages.OBJECT_META, Via.CODE)
def the_uid_of_an_object_does_not_change(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid", "metadata.uid", "field is immutable"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"uid": "another"}})


@behaviour(pages.OBJECT_META, Via.RAW)
def a_change_does_not_delete(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    for field, value in (("deletionTimestamp", "2026-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 0)):
        with t.refused("Invalid", f"metadata.{field}", "field is immutable"):
            t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {field: value}})
        with t.refused("Invalid", f"metadata.{field}", "field is immutable"):
            t.replace(CONFIG_MAPS, {"metadata": {"name": "m", field: value}})
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & t.now(CONFIG_MAPS, "m")["metadata"].keys()


@behaviour(pages.UPDATES, Via.RAW)
def a_cluster_wide_object_has_no_namespace(t: Case) -> None:
    name = t.node()
    t.replace(r.NODES, {"metadata": {"name": name, "namespace": "other", "labels": {"example.com/a": "b"}}})
    found = t.now(r.NODES, name)["metadata"]
    assert (found["labels"]["example.com/a"], "namespace" in found) == ("b", False)


@behaviour(pages.UPDATES, Via.RAW)
def a_replacement_names_the_object_of_its_path(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    for name, meta, words in (
        ("m", {"name": "n"}, "the name of the object (n) does not match the name on the URL (m)"),
        ("absent", {"name": "m"}, "the name of the object (m) does not match the name on the URL (absent)"),
        ("m", {}, "name must be provided"),
        ("m", {"name": "m", "namespace": "other"}, "does not match the namespace"),
    ):
        answer = t.raw.answer("PUT", t.path(CONFIG_MAPS, name), body={"metadata": meta})
        assert (answer.code, words in answer.json["message"]) == (400, True), answer.body


@behaviour(pages.VERBS, Via.CODE)
def some_kinds_are_created_by_a_replacement(t: Case) -> None:
    group = "rbac.authorization.k8s.io"
    roles = Resource(group, "v1", "roles", "Role")
    if t.by_raw:
        for resource, obj in ((r.ENDPOINTS, r.ENDPOINTS.object("p")), (roles, roles.object("p", rules=[]))):
            assert t.raw.answer("PUT", t.path(resource, "p"), body=obj).code == 201, resource
        of_another = r.lease("p")
        of_another["metadata"]["uid"] = "not-its-uid"
        answer = t.raw.answer("PUT", t.path(r.LEASES, "p"), body=of_another)
        assert (answer.code, answer.json["reason"]) == (409, "Conflict")
        answer = t.raw.answer("PUT", t.path(r.BUDGETS, "p"), body=r.budget("p", "web"))
        assert (answer.code, answer.json["reason"]) == (404, "NotFound")
    t.replace(r.LEASES, r.lease("p", holderIdentity="first"))
    assert t.now(r.LEASES, "p")["spec"]["holderIdentity"] == "first"


@behaviour(pages.VERBS, Via.RAW)
def who_may_only_replace_creates_nothing(t: Case) -> None:
    group, user = "rbac.authorization.k8s.io", f"user-of-{t.ns}"
    role = Resource(group, "v1", "roles", "Role")
    binding = Resource(group, "v1", "rolebindings", "RoleBinding")
    rule = {"verbs": ["update", "get"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    t.given(role, role.object("r", rules=[rule]))
    subject = {"apiGroup": group, "kind": "User", "name": user}
    t.given(binding, binding.object("b", roleRef={"apiGroup": group, "kind": "Role", "name": "r"}, subjects=[subject]))
    t.given(r.LEASES, r.lease("there"))
    itself = {"Impersonate-User": user}
    there = t.path(r.LEASES, "there")
    t.eventually(lambda: t.raw.answer("GET", there, headers=itself).code == 200, "the role in force")
    answer = t.raw.answer("PUT", t.path(r.LEASES, "p"), body=r.lease("p"), headers=itself)
    assert (answer.code, 'cannot create resource "leases"' in answer.json["message"]) == (403, True), answer.body
