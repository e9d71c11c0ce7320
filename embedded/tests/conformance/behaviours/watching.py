"""Watches."""

from __future__ import annotations

import itertools
import subprocess

import kubernetes
import pytest

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, Object, config_map

_INITIAL_END = "k8s.io/initial-events-end"


def _version(t: Case) -> str:
    version: str = t.raw.call("GET", t.path(CONFIG_MAPS))["metadata"]["resourceVersion"]
    return version


def _events(t: Case, count: int, **query: object) -> list[Object]:
    """The first events of a watch of the namespace's ConfigMaps through the client; the server ends it in any case."""
    if t.by_raw:
        return list(itertools.islice(t.raw.watch(t.path(CONFIG_MAPS), timeoutSeconds=20, **query), count))
    words = {
        "resourceVersion": "resource_version",
        "labelSelector": "label_selector",
        "fieldSelector": "field_selector",
    }
    options = {words[key]: value for key, value in query.items()}
    watch, found = kubernetes.watch.Watch(), []
    for event in watch.stream(t.python.typed().list_namespaced_config_map, t.ns, timeout_seconds=20, **options):
        found.append({"type": event["type"], "object": event["raw_object"]})
        if len(found) == count:
            watch.stop()
    return found


def _brief(events: list[Object]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


@behaviour(pages.WATCH, Via.CODE)
def a_watch_tells_of_every_change_since_its_version_in_order(t: Case) -> None:
    since = _version(t)
    t.given(CONFIG_MAPS, config_map("m"))
    t.change(CONFIG_MAPS, "m", {"data": {"key": "2"}})
    t.raw.delete(CONFIG_MAPS, t.ns, "m")
    events = _events(t, 3, resourceVersion=since)
    assert _brief(events) == [("ADDED", "m"), ("MODIFIED", "m"), ("DELETED", "m")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions)) and versions[0] > int(since)


@behaviour(pages.WATCH, Via.CODE)
def a_watch_goes_on_from_the_last_version_seen(t: Case) -> None:
    since = _version(t)
    for name in ("a", "b", "c"):
        t.given(CONFIG_MAPS, config_map(name))
    first = _events(t, 1, resourceVersion=since)
    rest = _events(t, 2, resourceVersion=first[0]["object"]["metadata"]["resourceVersion"])
    assert _brief(first + rest) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


@behaviour(pages.WATCH_SEMANTICS, Via.RAW)
def a_watch_without_version_begins_with_what_exists(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    for query in ({}, {"resourceVersion": "0"}):
        assert _brief(_events(t, 1, labelSelector="of=list", **query)) == [("ADDED", "m")]


@behaviour(pages.WATCH, Via.CODE)
def what_enters_a_selection_is_added_and_what_leaves_is_deleted(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    since = _version(t)
    for colour in ("red", "blue"):
        t.change(CONFIG_MAPS, "m", {"metadata": {"labels": {"colour": colour}}})
    events = _events(t, 2, resourceVersion=since, labelSelector="colour=red")
    assert _brief(events) == [("ADDED", "m"), ("DELETED", "m")]


@behaviour(pages.WATCH, Via.CODE)
def a_watch_of_one_name_tells_of_it_alone(t: Case) -> None:
    since = _version(t)
    for name in ("a", "b"):
        t.given(CONFIG_MAPS, config_map(name))
        t.raw.delete(CONFIG_MAPS, t.ns, name)
    events = _events(t, 2, resourceVersion=since, fieldSelector="metadata.name=b")
    assert _brief(events) == [("ADDED", "b"), ("DELETED", "b")]


@behaviour(pages.WATCH, Via.RAW)
def a_watch_ends_when_its_time_is_over(t: Case) -> None:
    assert list(t.raw.watch(t.path(CONFIG_MAPS), resourceVersion=_version(t), timeoutSeconds=1)) == []


@behaviour(pages.WATCH, Via.RAW)
def a_dry_run_or_an_unchanging_write_is_no_event(t: Case) -> None:
    obj = t.given(CONFIG_MAPS, config_map("m"))
    since = obj["metadata"]["resourceVersion"]
    t.raw.replace(CONFIG_MAPS, t.ns, obj)
    t.raw.create(CONFIG_MAPS, t.ns, config_map("dry"), dry_run="All")
    t.given(CONFIG_MAPS, config_map("real"))
    assert _brief(_events(t, 1, resourceVersion=since)) == [("ADDED", "real")]


@behaviour(pages.UNAVAILABLE, Via.CODE)
def a_version_too_old_to_watch_from_is_gone(t: Case) -> None:
    if t.by_raw:
        event = _events(t, 1, resourceVersion="1")[0]
        assert event["type"] == "ERROR" and event["object"]["kind"] == "Status"
        assert (event["object"]["code"], event["object"]["reason"]) in ((410, "Expired"), (410, "Gone"))
        return
    with pytest.raises(kubernetes.client.ApiException) as refused:
        _events(t, 1, resourceVersion="1")
    assert refused.value.status == 410


@behaviour(pages.STREAMING, Via.RAW)
def a_streamed_list_ends_with_a_bookmark_that_says_so(t: Case) -> None:
    for name in ("a", "b"):
        t.given(CONFIG_MAPS, config_map(name, {"of": "list"}))
    query = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}
    events = _events(t, 3, labelSelector="of=list", **query)
    assert sorted(_brief(events[:2])) == [("ADDED", "a"), ("ADDED", "b")]
    bookmark = events[2]
    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "ConfigMap")
    assert bookmark["object"]["metadata"]["annotations"] == {_INITIAL_END: "true"}
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) > 0


@behaviour(pages.STREAMING, Via.RAW)
def initial_events_need_a_version_match(t: Case) -> None:
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS), query={"watch": True, "sendInitialEvents": True})
    assert (answer.code, answer.json["reason"]) == (422, "Invalid")


@behaviour(pages.STREAMING, Via.RAW)
def a_version_match_is_not_for_plain_watches(t: Case) -> None:
    query = {"watch": True, "resourceVersionMatch": "NotOlderThan", "resourceVersion": _version(t)}
    answer = t.raw.answer("GET", t.path(CONFIG_MAPS), query=query)
    assert (answer.code, answer.json["reason"]) == (422, "Invalid")


@behaviour(pages.TABLES, Via.RAW)
def a_watch_may_be_of_tables(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    event = next(t.raw.watch(t.path(r.PODS), headers=headers, timeoutSeconds=20))
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")
    assert event["object"]["rows"][0]["cells"][0] == "p"


@behaviour(pages.WATCH, Via.RAW)
def a_watch_of_a_namespace_tells_nothing_of_others(t: Case) -> None:
    since = _version(t)
    t.raw.create(CONFIG_MAPS, t.namespace(), config_map("there"))
    t.given(CONFIG_MAPS, config_map("here"))
    names = [name for _, name in _brief(_events(t, 1, resourceVersion=since, labelSelector="!none"))]
    assert names == ["here"]


@behaviour(pages.WATCH, Via.RAW)
def a_last_state_is_told_with_the_version_of_the_deletion(t: Case) -> None:
    created = t.given(CONFIG_MAPS, config_map("m"))["metadata"]["resourceVersion"]
    t.raw.delete(CONFIG_MAPS, t.ns, "m")
    event = _events(t, 1, resourceVersion=created)[0]
    assert event["type"] == "DELETED" and event["object"]["data"] == {"key": "value"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(created)


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_watches_until_told_to_stop(t: Case) -> None:
    t.given(r.PODS, r.pod("p"))
    command = t.binary.command("get", "pods", "-w", "-n", t.ns, "--output-watch-events")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=t.binary.environment()) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(2)]
        t.change(r.PODS, "p", {"status": {"phase": "Running"}}, "status")
        lines.append(process.stdout.readline().split())
        process.terminate()
    assert lines[0][:5] == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS"]
    assert [line[:4] for line in lines[1:]] == [["ADDED", "p", "0/1", "Pending"], ["MODIFIED", "p", "0/1", "Running"]]


@behaviour(pages.WATCH, Via.RAW)
def one_object_is_read_and_not_watched(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m"))
    found = t.raw.call("GET", t.path(CONFIG_MAPS, "m"), query={"watch": True, "timeoutSeconds": 1})
    assert (found["kind"], found["metadata"]["name"]) == ("ConfigMap", "m")


@behaviour(pages.STREAMING, Via.RAW)
def the_end_of_a_streamed_list_is_told_to_who_takes_bookmarks(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"of": "list"}))
    query = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "labelSelector": "of=list"}
    events = t.raw.watch(t.path(CONFIG_MAPS), timeoutSeconds=1, **query)
    assert [event["type"] for event in events] == ["ADDED"]
