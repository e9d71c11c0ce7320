"""Events through both of their APIs."""

import pytest

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
ABOUT = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u", "apiVersion": "v1"}
NEW_EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "new"},
    "regarding": ABOUT,
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "me",
    "reportingInstance": "me-1",
    "action": "Binding",
    "reason": "Scheduled",
    "note": "It is.",
    "type": "Normal",
}
CORE_EVENT = {
    "metadata": {"name": "old"},
    "involvedObject": ABOUT,
    "reason": "Killing",
    "message": "It was.",
    "type": "Warning",
    "count": 3,
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": "2026-01-01T00:05:00Z",
    "source": {"component": "kubelet", "host": "n"},
}


def test_an_event_of_the_new_api_shows_in_the_old_one(api):
    """The same object under other field names."""
    made = api.post(NEW, NEW_EVENT)
    assert (made["apiVersion"], made["note"], made["regarding"]["name"]) == ("events.k8s.io/v1", "It is.", "p")
    found = api.get(f"{CORE}/new")
    assert found["apiVersion"] == "v1"
    assert (found["message"], found["involvedObject"], found["reportingComponent"]) == ("It is.", ABOUT, "me")
    assert not {"note", "regarding", "reportingController"} & set(found)
    assert found["metadata"] == made["metadata"]


def test_an_event_of_the_old_api_shows_in_the_new_one(api):
    """What the new API has no name for is called deprecated."""
    api.post(CORE, CORE_EVENT)
    (found,) = api.get(NEW)["items"]
    assert not {"kind", "apiVersion"} & set(found)  # the list says so of all
    found = api.get(f"{NEW}/{found['metadata']['name']}")
    assert (found["apiVersion"], found["note"], found["deprecatedCount"]) == ("events.k8s.io/v1", "It was.", 3)
    assert found["deprecatedSource"] == {"component": "kubelet", "host": "n"}
    assert found["deprecatedLastTimestamp"] == "2026-01-01T00:05:00Z"
    assert not {"message", "involvedObject", "count", "source"} & set(found)


SELECTORS = {
    (CORE, "involvedObject.name=p"): ["new", "old"],
    (CORE, "type=Warning"): ["old"],
    (CORE, "reportingComponent=me"): ["new"],
    (NEW, "regarding.name=p,regarding.kind=Pod"): ["new", "old"],
    (NEW, "reportingController=me"): ["new"],
    (NEW, "reason!=Scheduled"): ["old"],
    (NEW, "regarding.uid=other"): [],
}


@pytest.mark.parametrize(("url", "selector", "expected"), [(*key, found) for key, found in SELECTORS.items()])
def test_each_api_selects_by_its_own_names(api, url, selector, expected):
    """`kubectl events --for` and `kubectl describe` depend on it."""
    api.post(NEW, NEW_EVENT)
    api.post(CORE, CORE_EVENT)
    found = api.get(f"{url}?fieldSelector={selector.replace('=', '%3D').replace('!', '%21')}")
    assert [item["metadata"]["name"] for item in found["items"]] == expected


@pytest.mark.parametrize(("url", "field"), [(NEW, "involvedObject.name"), (CORE, "regarding.name"), (NEW, "note")])
def test_the_names_of_the_other_api_are_refused(api, url, field):
    """400, as for any field that cannot be selected by."""
    code, refused = api.call("GET", f"{url}?fieldSelector={field}%3Dx")
    assert (code, refused["message"]) == (400, f"field label not supported: {field}")


def test_a_series_goes_on_through_a_patch(api):
    """What client libraries do for repeated events; nothing else may change."""
    api.post(NEW, NEW_EVENT)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    code, changed = api.patch(f"{NEW}/new", {"series": series})
    assert (code, changed["series"], changed["note"]) == (200, series, "It is.")
    assert api.get(f"{CORE}/new")["series"] == series
    code, refused = api.patch(f"{NEW}/new", {"note": "Other."})
    assert (code, refused["details"]["causes"][0]["field"]) == (422, "note")


MISSING = {
    "eventTime": ({"eventTime": None}, "eventTime"),
    "who reports": ({"reportingController": ""}, "reportingController"),
    "which instance": ({"reportingInstance": None}, "reportingInstance"),
    "action": ({"action": None}, "action"),
    "reason": ({"reason": None}, "reason"),
    "type": ({"type": "Odd"}, "type"),
    "long note": ({"note": "x" * 1025}, "note"),
    "old fields": ({"deprecatedCount": 1}, "deprecatedCount"),
    "series of one": ({"series": {"count": 1, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}, "series.count"),
}


@pytest.mark.parametrize(("change", "field"), MISSING.values(), ids=MISSING)
def test_a_new_event_must_say_who_and_what(api, change, field):
    """The new API insists where the old one did not."""
    code, refused = api.call("POST", NEW, {**NEW_EVENT, **change})
    assert code == 422, refused
    assert field in [cause["field"] for cause in refused["details"]["causes"]]


def test_deleting_through_either_api_is_deleting(api):
    """And watches of both see it in their own form."""
    api.post(NEW, NEW_EVENT)
    since = api.core.store.revision
    assert api.call("DELETE", f"{NEW}/new")[0] == 200
    assert api.call("GET", f"{CORE}/new")[0] == 404
    code, missing = api.call("GET", f"{NEW}/new")
    assert (code, missing["message"]) == (404, 'events.events.k8s.io "new" not found')
    (new,), (old,) = (api.watch(f"{url}?watch=1&resourceVersion={since}") for url in (NEW, CORE))
    assert (new["type"], new["object"]["note"], new["object"]["kind"]) == ("DELETED", "It is.", "Event")
    assert (old["type"], old["object"]["message"]) == ("DELETED", "It is.")
