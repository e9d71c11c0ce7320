"""Events of our own controllers."""

from embedded.apiserver.apimachinery.objects import rfc3339
from embedded.apiserver.reconciling.event_recorder import record_event

EVENTS = "/api/v1/namespaces/default/events"


def test_the_same_thing_said_again_is_counted(api):
    """One event, its count and its last time; another message is another event."""
    about = api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}})
    for message in ("one", "one", "two"):
        record_event(api.resources, about, "Reason", message, "me")
        api.clock.advance(10)
    found = {e["message"]: e for e in api.get(EVENTS)["items"]}
    assert {message: e["count"] for message, e in found.items()} == {"one": 2, "two": 1}
    assert found["one"]["firstTimestamp"] == rfc3339(api.clock() - 30)
    assert found["one"]["lastTimestamp"] == rfc3339(api.clock() - 20)


def test_the_name_fits_a_long_object_name(api):
    """253 characters are what a name may have."""
    about = api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x" * 253}})
    record_event(api.resources, about, "Reason", "said", "me")
    (told,) = api.get(EVENTS)["items"]
    assert told["involvedObject"]["name"] == "x" * 253
