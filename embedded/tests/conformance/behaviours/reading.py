"""Lists: selectors, pages, versions, tables."""

from __future__ import annotations

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, config_map

_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def _names(items: list[Object]) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


def _colours(t: Case) -> None:
    for name, labels in (("a", {"colour": "red"}), ("b", {"colour": "blue", "big": ""}), ("c", {})):
        t.given(CONFIG_MAPS, config_map(name, {"of": "list"} | labels))


def _selected(t: Case, selector: str) -> list[str]:
    return _names(t.list(CONFIG_MAPS, labels=selector))


def _five(t: Case) -> list[str]:
    names = [f"m{number}" for number in range(5)]
    for name in names:
        t.given(CONFIG_MAPS, config_map(name, {"of": "list"}))
    return names


@behaviour(pages.COLLECTIONS, Via.RAW)
def a_list_has_a_kind_and_a_version(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    found = t.raw.call("GET", t.path(CONFIG_MAPS))
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert found["metadata"]["resourceVersion"]
    assert "m" in _names(found["items"])


@behaviour(pages.COLLECTIONS, Via.RAW)
def an_empty_list_has_items(t: Case) -> None:
    assert t.raw.call("GET", t.path(r.LEASES))["items"] == []


@behaviour(pages.URIS)
def a_list_without_namespace_holds_those_of_all(t: Case) -> None:
    label = t.unique("all")
    t.given(CONFIG_MAPS, config_map("here", {"of": label}))
    t.raw.create(CONFIG_MAPS, t.namespace(), config_map("there", {"of": label}))
    if t.by_kubectl:
        items = t.kubectl("get", "configmaps", "-A", "-ojson", "-l", f"of={label}").json["items"]
    elif t.by_raw:
        items = t.raw.list(CONFIG_MAPS, "", f"of={label}")
    else:
        found = t.python.typed().list_config_map_for_all_namespaces(label_selector=f"of={label}").items
        items = [{"metadata": {"name": item.metadata.name}} for item in found]
    assert _names(items) == ["here", "there"]


@behaviour(pages.LABELS + "#equality-based-requirement", fast=Via.ALL)
def labels_select_by_equality(t: Case) -> None:
    _colours(t)
    assert _selected(t, "colour=red") == _selected(t, "colour==red") == ["a"]
    assert _selected(t, "of=list,colour!=red") == ["b", "c"]


@behaviour(pages.LABELS + "#set-based-requirement")
def labels_select_by_set(t: Case) -> None:
    _colours(t)
    assert _selected(t, "colour in (red, blue)") == ["a", "b"]
    assert _selected(t, "of=list,colour notin (red)") == ["b", "c"]


@behaviour(pages.LABELS + "#set-based-requirement", Via.CODE)
def labels_select_by_presence(t: Case) -> None:
    _colours(t)
    assert _selected(t, "colour") == ["a", "b"]
    assert _selected(t, "of,!colour") == ["c"]
    assert _selected(t, "big,colour=blue") == ["b"]


@behaviour(pages.LABELS, Via.CODE)
def a_malformed_label_selector_is_a_bad_request(t: Case) -> None:
    for selector in ("a in", "=b", "a=(", "a in (b"):
        with t.refused("BadRequest"):
            t.list(CONFIG_MAPS, labels=selector)


@behaviour(pages.FIELD_SELECTORS, fast=Via.ALL)
def fields_select_by_name(t: Case) -> None:
    _colours(t)
    assert _names(t.list(CONFIG_MAPS, fields="metadata.name=b")) == ["b"]
    assert _names(t.list(CONFIG_MAPS, labels="of=list", fields="metadata.name!=b")) == ["a", "c"]


@behaviour(pages.FIELD_SELECTORS)
def fields_of_pods_select_by_node_and_phase(t: Case) -> None:
    node = t.node()
    t.given(r.PODS, r.pod("here", nodeName=node))
    t.given(r.PODS, r.pod("nowhere"))
    t.change(r.PODS, "here", {"status": {"phase": "Running"}}, "status")
    assert _names(t.list(r.PODS, fields=f"spec.nodeName={node},status.phase!=Failed")) == ["here"]
    assert _names(t.list(r.PODS, fields="status.phase=Pending")) == ["nowhere"]
    assert _names(t.list(r.PODS, fields="spec.restartPolicy=Always,spec.nodeName=")) == ["nowhere"]


@behaviour(pages.FIELD_SELECTORS)
def an_unsupported_field_is_a_bad_request(t: Case) -> None:
    with t.refused("BadRequest", "field label not supported: spec.hostname"):
        t.list(r.PODS, fields="spec.hostname=x")


@behaviour(pages.FIELD_SELECTORS, Via.CODE)
def fields_of_events_select_what_they_are_about(t: Case) -> None:
    t.given(r.EVENTS, r.event("one", t.ns, "a"))
    t.given(r.EVENTS, r.event("two", t.ns, "b"))
    found = t.list(r.EVENTS, fields="involvedObject.name=b,involvedObject.kind=Pod,reason=Tested")
    assert _names(found) == ["two"]


@behaviour(pages.FIELD_SELECTORS, Via.CODE)
def fields_of_namespaces_and_secrets_select(t: Case) -> None:
    assert t.ns in _names(t.list(r.NAMESPACES, fields="status.phase=Active"))
    t.given(r.SECRETS, r.SECRETS.object("s", type="example.com/own"))
    assert _names(t.list(r.SECRETS, fields="type=example.com/own")) == ["s"]


@behaviour(pages.CHUNKS, Via.RAW)
def pages_follow_each_other_to_the_end(t: Case) -> None:
    names, seen, token, sizes = _five(t), [], "", []
    while True:
        query = {"limit": 2, "continue": token, "labelSelector": "of=list"}
        page = t.raw.call("GET", t.path(CONFIG_MAPS), query={key: value for key, value in query.items() if value})
        seen += _names(page["items"])
        sizes.append(len(page["items"]))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert (seen, sizes) == (names, [2, 2, 1])


@behaviour(pages.CHUNKS, Via.RAW)
def a_page_counts_what_remains(t: Case) -> None:
    for name in ("a", "b", "c"):
        t.given(r.LEASES, r.lease(name))
    page = t.raw.call("GET", t.path(r.LEASES), query={"limit": 1})
    assert page["metadata"]["remainingItemCount"] == 2 and page["metadata"]["continue"]


@behaviour(pages.CHUNKS, Via.RAW)
def pages_show_the_collection_as_it_was_at_the_first(t: Case) -> None:
    _five(t)
    query = {"limit": 2, "labelSelector": "of=list"}
    first = t.raw.call("GET", t.path(CONFIG_MAPS), query=query)
    t.given(CONFIG_MAPS, config_map("m9", {"of": "list"}))
    rest = t.raw.call(
        "GET", t.path(CONFIG_MAPS), query=query | {"limit": 50, "continue": first["metadata"]["continue"]}
    )
    assert _names(rest["items"]) == ["m2", "m3", "m4"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@behaviour(pages.CHUNKS, Via.RAW)
def a_foreign_continue_token_is_a_bad_request(t: Case) -> None:
    with t.refused("BadRequest", "continue"):
        t.raw.call("GET", t.path(CONFIG_MAPS), query={"limit": 1, "continue": "nonsense"})


@behaviour(pages.GET_LIST, Via.RAW)
def a_list_at_any_version_is_answered(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    for query in ({"resourceVersion": "0"}, {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"}):
        assert t.raw.answer("GET", t.path(CONFIG_MAPS), query=query).code == 200


@behaviour(pages.GET_LIST, Via.RAW)
def a_list_not_older_than_a_write_shows_it(t: Case) -> None:
    version = t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))["metadata"]["resourceVersion"]
    query = {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan", "labelSelector": "of=list"}
    found = t.raw.call("GET", t.path(CONFIG_MAPS), query=query)
    assert _names(found["items"]) == ["m"] and int(found["metadata"]["resourceVersion"]) >= int(version)


@behaviour(pages.GET_LIST, Via.RAW)
def a_version_match_without_version_is_invalid(t: Case) -> None:
    for query in ({"resourceVersionMatch": "Exact"}, {"resourceVersionMatch": "Exact", "resourceVersion": "0"}):
        answer = t.raw.answer("GET", t.path(CONFIG_MAPS), query=query)
        assert (answer.code, answer.json["reason"]) == (422, "Invalid"), query
        assert "resourceVersionMatch" in answer.json["message"]


@behaviour(pages.GET_LIST, Via.RAW)
def a_version_that_is_no_version_is_refused(t: Case) -> None:
    for resource in (CONFIG_MAPS, r.PODS):
        assert t.raw.answer("GET", t.path(resource), query={"resourceVersion": "soon"}).code in (400, 422)


@behaviour(pages.UNAVAILABLE, Via.RAW)
def a_version_of_the_future_times_out(t: Case) -> None:
    now = int(t.raw.call("GET", t.path(CONFIG_MAPS))["metadata"]["resourceVersion"])
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS), query={"resourceVersion": str(now + 1_000_000_000)})
    assert (answer.code, answer.json["reason"]) == (504, "Timeout")
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    beyond = t.raw.answer("GET", t.path(CONFIG_MAPS), query={"resourceVersion": str(2**64)})
    assert (beyond.code, "value out of range" in beyond.json["message"]) == (400, True)
    of_one = t.raw.answer("GET", t.path(CONFIG_MAPS, "absent"), query={"resourceVersion": str(now + 1_000_000_000)})
    assert (of_one.code, of_one.json["reason"]) == (504, "Timeout")


@behaviour(pages.COLLECTIONS, Via.RAW)
def a_list_says_the_kind_of_its_items(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    for method in ("GET", "DELETE"):
        (item,) = t.raw.call(method, t.path(CONFIG_MAPS), query={"labelSelector": "of=list"})["items"]
        assert item["metadata"]["name"] == "m" and not {"kind", "apiVersion"} & item.keys()
    widgets = t.custom()
    t.given(widgets, widgets.object("w"))
    (item,) = t.raw.list(widgets, t.ns)
    assert (item["kind"], item["apiVersion"]) == (widgets.kind, widgets.api_version)


@behaviour(pages.TABLES, Via.RAW)
def what_is_written_may_be_shown_as_a_table(t: Case) -> None:
    made = t.raw.answer("POST", t.path(CONFIG_MAPS), body=config_map("m"), headers=_TABLE)
    assert (made.code, made.json["kind"], made.json["rows"][0]["cells"][0]) == (201, "Table", "m")
    patch = {"Content-Type": "application/merge-patch+json"}
    changed = t.raw.answer("PATCH", t.path(CONFIG_MAPS, "m"), body={}, headers=_TABLE | patch)
    assert (changed.code, changed.json["kind"]) == (200, "Table")


@behaviour(pages.TABLES, Via.RAW)
def a_form_that_nobody_knows_is_not_acceptable(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    form = "application/json;as=Chart;v=v1;g=meta.k8s.io"
    assert t.raw.answer("GET", t.path(CONFIG_MAPS, "m"), headers={"Accept": form}).code == 406
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS, "m"), headers={"Accept": f"{form}, application/json"})
    assert (answer.code, answer.json["kind"]) == (200, "ConfigMap")


@behaviour(pages.METADATA, Via.RAW)
def the_metadata_of_a_list_is_a_list(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    for path, form, code in (
        (t.path(CONFIG_MAPS), "PartialObjectMetadataList", 200),
        (t.path(CONFIG_MAPS), "PartialObjectMetadata", 406),
        (t.path(CONFIG_MAPS, "m"), "PartialObjectMetadata", 200),
        (t.path(CONFIG_MAPS, "m"), "PartialObjectMetadataList", 406),
    ):
        headers = {"Accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
        assert t.raw.answer("GET", path, headers=headers).code == code, (path, form)


@behaviour(pages.TABLES, Via.RAW)
def a_table_has_columns_and_a_row_for_each_object(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    answer = t.raw.answer("GET", t.path(r.PODS), headers=_TABLE)
    table = answer.json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    columns = [(column["name"], column["priority"]) for column in table["columnDefinitions"]]
    wide = [("IP", 1), ("Node", 1), ("Nominated Node", 1), ("Readiness Gates", 1)]
    assert columns == [("Name", 0), ("Ready", 0), ("Status", 0), ("Restarts", 0), ("Age", 0), *wide]
    assert table["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@behaviour(pages.TABLES, Via.RAW)
def a_table_holds_as_much_of_the_object_as_asked_for(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    rows = {}
    for include in ("None", "Metadata", "Object"):
        query = {"includeObject": include, "labelSelector": "of=list"}
        rows[include] = t.raw.call("GET", t.path(CONFIG_MAPS), query=query, headers=_TABLE)["rows"][0]
    assert not rows["None"].get("object")
    assert rows["Metadata"]["object"]["metadata"]["name"] == "m" and "data" not in rows["Metadata"]["object"]
    assert rows["Object"]["object"]["data"] == {"key": "value"}


@behaviour(pages.TABLES, Via.RAW)
def a_table_of_one_object_has_one_row(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    table = t.raw.call("GET", t.path(CONFIG_MAPS, "m"), headers=_TABLE)
    assert table["kind"] == "Table" and table["rows"][0]["cells"][:2] == ["m", 1]


@behaviour(pages.METADATA, Via.RAW)
def metadata_may_be_fetched_alone(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    found = t.raw.call("GET", t.path(CONFIG_MAPS), query={"labelSelector": "of=list"}, headers=accept)
    assert (found["kind"], found["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    assert _names(found["items"]) == ["m"] and "data" not in found["items"][0]
    single = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    one = t.raw.call("GET", t.path(CONFIG_MAPS, "m"), headers=single)
    assert one["kind"] == "PartialObjectMetadata" and "data" not in one
