"""Writes that wait for admission by others while the cluster moves on: nothing is done to what nobody agreed to."""

import asyncio

import pytest

from embedded.apiserver.admission.admitted_writes import AdmittedWrites, NoAdmissionHooks
from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS
from embedded.apiserver.apimachinery.status import StatusError, forbidden
from embedded.apiserver.handlers import modify
from embedded.apiserver.registry.resources import WriteOptions
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.target import Target
from embedded.tests.apiserver.apiextensions.test_definitions import DEFINITIONS, WIDGETS, definition, version, widget

MAPS = "/api/v1/namespaces/default/configmaps"
WIDGET_DEFINITION = f"{DEFINITIONS}/widgets.example.com"


class Meddled(NoAdmissionHooks):
    """Allows what is not labelled `keep`; meanwhile something happens, the first time it is asked."""

    def __init__(self, happens):
        self.happens, self.asked = happens, []

    def concern(self, rtype, namespace, subresource):
        return True

    async def validate(self, draft):
        draft.options.warnings.append("think twice")
        await self._see(draft.new)

    async def validate_deletion(self, rtype, old, options):
        options.warnings.append("think twice")
        await self._see(old)
        if "keep" in old["metadata"].get("labels", {}):
            raise forbidden(rtype, old["metadata"]["name"], "it is to be kept")

    async def _see(self, obj):
        self.asked.append(obj)
        if len(self.asked) == 1:
            await asyncio.to_thread(self.happens)  # as from another client: with a loop of its own


def make_map(api, name="c", **labels):
    return api.post(MAPS, {"metadata": {"name": name, "labels": labels}})


def replace(api, **labels):
    api.call("DELETE", f"{MAPS}/c")
    make_map(api, **labels)


def label(api, **labels):
    api.patch(f"{MAPS}/c", {"metadata": {"labels": labels}})


def overtaken(api, happens):
    hooks = Meddled(happens)
    return AdmittedWrites(api.resources, hooks), hooks


KEPT = {"changed": label, "another of its name": replace}


@pytest.mark.parametrize("happens", KEPT.values(), ids=KEPT)
def test_a_deletion_is_of_what_was_looked_at(api, happens):
    """What is there by then is looked at again, and stays when it is refused."""
    make_map(api)
    writes, hooks = overtaken(api, lambda: happens(api, keep="yes"))
    with pytest.raises(StatusError, match="it is to be kept"):
        asyncio.run(writes.delete(CONFIG_MAPS, "default", "c"))
    assert len(hooks.asked) == 2
    assert api.get(f"{MAPS}/c")["metadata"]["labels"] == {"keep": "yes"}


def test_a_deletion_that_is_agreed_to_in_the_end_happens(api):
    """With the warnings of the last look alone."""
    make_map(api)
    writes, hooks = overtaken(api, lambda: label(api, other="yes"))
    target = Target(CONFIG_MAPS, "default", "c")
    answer = asyncio.run(modify.delete(writes, target, Request("DELETE", f"{MAPS}/c")))
    assert (answer.status, answer.warnings, len(hooks.asked)) == (200, ("think twice",), 2)
    assert api.call("GET", f"{MAPS}/c")[0] == 404


def test_a_change_made_again_repeats_no_warning(api):
    """The client is told what was said of the change that was made."""
    make_map(api)
    writes, hooks = overtaken(api, lambda: label(api, other="yes"))
    options = WriteOptions()
    asyncio.run(writes.update(CONFIG_MAPS, "default", "c", lambda obj: obj | {"data": {"a": "1"}}, options))
    assert (options.warnings, len(hooks.asked)) == (["think twice"], 2)


LEFT = {
    "left the selection": lambda api: label(api, go=None),
    "another of its name": lambda api: replace(api, go="yes"),
}


@pytest.mark.parametrize("happens", LEFT.values(), ids=LEFT)
def test_a_collection_is_deleted_as_it_was_selected(api, happens):
    """An object that left the selection meanwhile stays, and so does one that took the place of a selected one."""
    make_map(api, "c", go="yes")
    make_map(api, "d", go="yes")
    writes, _ = overtaken(api, lambda: happens(api))
    request = Request("DELETE", MAPS, {"labelSelector": "go=yes"})
    answer = asyncio.run(modify.delete_collection(writes, Target(CONFIG_MAPS, "default", ""), request))
    assert answer.status == 200
    assert (api.call("GET", f"{MAPS}/c")[0], api.call("GET", f"{MAPS}/d")[0]) == (200, 404)


def test_a_collection_follows_what_merely_changed(api):
    """It is selected still, so it goes."""
    make_map(api, "c", go="yes")
    writes, hooks = overtaken(api, lambda: label(api, other="yes"))
    request = Request("DELETE", MAPS, {"labelSelector": "go=yes"})
    asyncio.run(modify.delete_collection(writes, Target(CONFIG_MAPS, "default", ""), request))
    assert (api.call("GET", f"{MAPS}/c")[0], len(hooks.asked)) == (404, 2)


def unserve(api):
    api.patch(WIDGET_DEFINITION, {"spec": {"versions": [version(served=False)]}})


def undefine(api):
    api.call("DELETE", WIDGET_DEFINITION)
    api.settle()


def create_widget(api, happens):
    writes, _ = overtaken(api, lambda: happens(api))
    return asyncio.run(writes.create(api.core.registry.by_id("widgets.example.com"), "default", widget()))


@pytest.mark.parametrize("happens", [unserve, undefine])
def test_nothing_is_stored_of_a_type_that_is_served_no_more(api, happens):
    """404 for a creation whose definition went while it waited."""
    api.post(DEFINITIONS, definition())
    with pytest.raises(StatusError) as refused:
        create_widget(api, happens)
    assert refused.value.code == 404
    assert api.core.store.count("widgets.example.com") == 0


def restrict(api, size):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}}
    changed = [version(schema={"openAPIV3Schema": schema})]
    assert api.patch(WIDGET_DEFINITION, {"spec": {"versions": changed}})[0] == 200


def test_a_definition_that_changes_meanwhile_holds(api):
    """What is stored is what the definition of that moment allows."""
    api.post(DEFINITIONS, definition())
    with pytest.raises(StatusError) as refused:
        create_widget(api, lambda api: restrict(api, {"type": "integer", "minimum": 5}))
    assert (refused.value.code, refused.value.details["causes"][0]["field"]) == (422, "spec.size")
    assert api.core.store.count("widgets.example.com") == 0


def test_a_definition_written_again_disturbs_nobody(api):
    """A label on it changes nothing for its objects."""
    api.post(DEFINITIONS, definition())
    made = create_widget(api, lambda api: api.patch(WIDGET_DEFINITION, {"metadata": {"labels": {"a": "b"}}}))
    assert api.get(f"{WIDGETS}/w") == made
