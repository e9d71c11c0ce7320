"""Definitions that change under what is stored and watched."""

import asyncio
import json

import pytest

from embedded.apiserver.request.messages import Request
from embedded.tests.apiserver.apiextensions.test_definitions import DEFINITIONS, WIDGETS, definition, version, widget

WIDGET_DEFINITION = f"{DEFINITIONS}/widgets.example.com"
ID = "widgets.example.com"
SIZE = {"type": "integer"}


def with_fields(name="v1", storage=True, **fields):
    spec = {"type": "object", "properties": {"size": SIZE} | fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    return version(name, storage, schema={"openAPIV3Schema": schema})


def redefine(api, *versions):
    code, answer = api.patch(WIDGET_DEFINITION, {"spec": {"versions": list(versions)}})
    assert code == 200, answer


def written(api):
    """What a restart would find of the object."""
    record = api.core.store.get(ID, "default", "w")
    return json.loads(record.original or record.body)


def test_a_definition_that_serves_nothing_still_owns_its_objects(api):
    """Deleted, it takes them along; served again, it shows them again."""
    api.post(DEFINITIONS, definition())
    made = api.post(WIDGETS, widget())
    redefine(api, version(served=False))
    assert api.call("GET", f"{WIDGETS}/w")[0] == 404
    redefine(api, version())
    assert api.get(f"{WIDGETS}/w") == made
    redefine(api, version(served=False))
    assert api.call("DELETE", WIDGET_DEFINITION)[0] == 200
    api.settle()
    assert (api.call("GET", WIDGET_DEFINITION)[0], api.core.store.count(ID)) == (404, 0)


def test_a_field_that_a_schema_drops_is_there_for_the_next_that_knows_it(api):
    """Data is kept until the object is written."""
    text = {"type": "string"}
    api.post(DEFINITIONS, definition(versions=[with_fields(old=text)]))
    api.post(WIDGETS, widget(old="x"))
    redefine(api, with_fields())
    assert api.get(f"{WIDGETS}/w")["spec"] == {"size": 1}
    redefine(api, with_fields(old=text))
    assert api.get(f"{WIDGETS}/w")["spec"] == {"size": 1, "old": "x"}
    redefine(api, with_fields())
    api.patch(f"{WIDGETS}/w", {"spec": {"size": 2}})
    redefine(api, with_fields(old=text))
    assert api.get(f"{WIDGETS}/w")["spec"] == {"size": 2}


def test_writing_an_object_as_it_is_migrates_it(api):
    """After the storage version moved, an empty change stores it again; the next one is none."""
    api.post(DEFINITIONS, definition(versions=[version("v1"), version("v2", storage=False)]))
    api.post(WIDGETS, widget())
    redefine(api, version("v1", storage=False), version("v2"))
    assert written(api)["apiVersion"] == "example.com/v1"
    _, moved = api.patch(f"{WIDGETS}/w", {})
    assert written(api)["apiVersion"] == "example.com/v2"
    assert api.patch(f"{WIDGETS}/w", {})[1] == moved


def test_an_only_version_shows_what_was_stored_in_another(api):
    """Its own apiVersion, whoever said that nothing is left of the other."""
    api.post(DEFINITIONS, definition(versions=[version("v1"), version("v2", storage=False)]))
    api.post(WIDGETS, widget())
    redefine(api, version("v1", storage=False), version("v2"))
    api.patch(f"{WIDGET_DEFINITION}/status", {"status": {"storedVersions": ["v2"]}})
    redefine(api, version("v2"))
    listed = api.get("/apis/example.com/v2/namespaces/default/widgets")
    assert [item["apiVersion"] for item in listed["items"]] == ["example.com/v2"]


def watched(api, happens, seconds=10):
    """The events of a watch that ends by itself after something happens; None when it goes on for so long."""

    async def run():
        stream = await api.core.handle(Request("GET", WIDGETS, {"watch": "1", "resourceVersion": "0"}))
        events = [json.loads(await anext(stream.chunks))]
        await happens()
        try:
            async with asyncio.timeout(seconds):
                async for chunk in stream.chunks:
                    events += [json.loads(line) for line in chunk.splitlines()]
        except TimeoutError:
            return None
        return [event["type"] for event in events]

    return asyncio.run(run())


async def _patched(api, versions=None, **meta):
    body = {"metadata": meta} | ({"spec": {"versions": versions}} if versions else {})
    kind = {"content-type": "application/merge-patch+json"}
    answer = await api.core.handle(Request("PATCH", WIDGET_DEFINITION, {}, kind, json.dumps(body).encode()))
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("versions", [[with_fields()], [version(served=False)]], ids=["schema", "withdrawal"])
def test_a_watch_ends_where_its_objects_look_different(api, versions):
    """The client comes back and sees them as they look by then."""
    api.post(DEFINITIONS, definition())
    api.post(WIDGETS, widget())
    assert watched(api, lambda: _patched(api, versions)) == ["ADDED"]


def test_a_watch_ends_with_its_definition_after_the_last_event(api):
    """The deletions arrive first."""
    api.post(DEFINITIONS, definition())
    api.post(WIDGETS, widget())

    async def happens():
        await api.core.handle(Request("DELETE", WIDGET_DEFINITION))
        await api.controllers.settle()

    assert watched(api, happens) == ["ADDED", "DELETED"]


def test_a_watch_goes_on_where_they_do_not(api):
    """A label on the definition is no reason."""
    api.post(DEFINITIONS, definition())
    api.post(WIDGETS, widget())
    assert watched(api, lambda: _patched(api, labels={"a": "b"}), seconds=0.2) is None


def test_what_a_stricter_schema_refuses_may_stay_as_it_is(api):
    """A change is refused for what it touches alone: KEP-4008."""
    item = {"type": "object", "properties": {"name": {"type": "string"}, "port": SIZE}, "required": ["name"]}
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    tags = {"type": "array", "items": {"type": "string"}}
    api.post(DEFINITIONS, definition(versions=[with_fields(ports=ports | {"items": item}, tags=tags)]))
    api.post(WIDGETS, widget(size=0, ports=[{"name": "a", "port": 0}], tags=["", "x"]))
    item = item | {"properties": {"name": {"type": "string"}, "port": SIZE | {"minimum": 1}}}
    tags = tags | {"items": {"type": "string", "minLength": 1}}
    strict = {"ports": ports | {"items": item}, "tags": tags, "size": SIZE | {"minimum": 1}, "note": {"type": "string"}}
    redefine(api, with_fields(**strict))

    def refused(**spec):
        code, answer = api.patch(f"{WIDGETS}/w", {"spec": spec})
        return [cause["field"] for cause in answer["details"]["causes"]] if code == 422 else code

    assert refused(note="fine") == 200
    assert refused(ports=[{"name": "b", "port": 1}, {"name": "a", "port": 0}]) == 200
    assert refused(ports=[{"name": "b", "port": 0}, {"name": "a", "port": 0}]) == ["spec.ports[0].port"]
    assert refused(tags=["x", ""]) == ["spec.tags[1]"]
    assert refused(size=-1) == ["spec.size"]
    assert api.call("POST", WIDGETS, widget("new", size=0))[0] == 422
