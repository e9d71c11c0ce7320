"""Every served type can be created, read, listed, changed and deleted."""

from __future__ import annotations

from collections.abc import Callable

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import Object, Resource

Make = Callable[[str, str], Object]
_HOOKS = [r.webhook("plain.conformance.example")]
_TYPES: tuple[tuple[Resource, str, Make], ...] = (
    (r.NAMESPACES, pages.NAMESPACES, lambda name, ns: r.NAMESPACES.object(name)),
    (r.NODES, pages.NODE, lambda name, ns: r.NODES.object(name, spec={"unschedulable": True})),
    (r.PODS, pages.POD, lambda name, ns: r.pod(name)),
    (r.CONFIG_MAPS, pages.CONFIG_MAP, lambda name, ns: r.config_map(name)),
    (r.SECRETS, pages.SECRET, lambda name, ns: r.SECRETS.object(name, data={"a": "MQ=="})),
    (r.SERVICE_ACCOUNTS, pages.SERVICE_ACCOUNT, lambda name, ns: r.SERVICE_ACCOUNTS.object(name)),
    (r.SERVICES, pages.SERVICE, lambda name, ns: r.service(name)),
    (r.EVENTS, pages.EVENT, r.event),
    (r.NEW_EVENTS, pages.EVENT, r.new_event),
    (r.QUOTAS, pages.QUOTA, lambda name, ns: r.QUOTAS.object(name, spec={"hard": {"pods": "1k"}})),
    (r.JOBS, pages.JOB, lambda name, ns: r.job(name, suspend=True)),
    (r.CRON_JOBS, pages.CRON_JOB, lambda name, ns: r.cron_job(name)),
    (r.BUDGETS, pages.DISRUPTIONS, lambda name, ns: r.budget(name, "none", minAvailable=1)),
    (r.LEASES, pages.LEASE, lambda name, ns: r.lease(name)),
    (r.PRIORITY_CLASSES, pages.PRIORITY, lambda name, ns: r.priority_class(name)),
    (r.VOLUMES, pages.VOLUMES, lambda name, ns: r.volume(name)),
    (r.CLAIMS, pages.VOLUMES, lambda name, ns: r.claim(name)),
    (
        r.STORAGE_CLASSES,
        pages.STORAGE_CLASSES,
        lambda name, ns: r.STORAGE_CLASSES.object(name, provisioner="x.example/d"),
    ),
    (r.MUTATING, pages.WEBHOOKS, lambda name, ns: r.MUTATING.object(name, webhooks=_HOOKS)),
    (r.VALIDATING, pages.WEBHOOKS, lambda name, ns: r.VALIDATING.object(name, webhooks=_HOOKS)),
    (r.POLICIES, pages.POLICIES, lambda name, ns: r.policy(name, {"expression": "true"})),
    (r.POLICY_BINDINGS, pages.POLICIES, r.policy_binding),
)


def _enter(resource: Resource, page: str, make: Make) -> None:
    title = f"{resource.kind} of {resource.api_version} can be created, read, listed, changed and deleted"

    @behaviour(page, Via.ALL, Via.CODE, name=title)
    def whole_life(t: Case) -> None:
        name = t.unique("life")
        created = t.create(resource, make(name, t.ns))
        assert (created["kind"], created["apiVersion"]) == (resource.kind, resource.api_version)
        assert t.get(resource, name)["metadata"]["uid"] == created["metadata"]["uid"]
        assert name in [item["metadata"]["name"] for item in t.list(resource)]
        changed = t.patch(resource, name, "merge", {"metadata": {"labels": {"changed": "yes"}}})
        assert changed["metadata"]["labels"]["changed"] == "yes"
        t.delete(resource, name)
        t.gone(resource, name)


for _type in _TYPES:
    _enter(*_type)


@behaviour(pages.CUSTOM, Via.ALL, Via.CODE)
def a_custom_object_can_be_created_read_listed_changed_and_deleted(t: Case) -> None:
    widgets = t.custom({"type": "object", "properties": {"size": {"type": "integer"}}})
    created = t.create(widgets, widgets.object("w", spec={"size": 1}))
    assert (created["kind"], created["spec"]) == ("Widget", {"size": 1})
    assert t.get(widgets, "w")["metadata"]["uid"] == created["metadata"]["uid"]
    assert [item["metadata"]["name"] for item in t.list(widgets)] == ["w"]
    assert t.patch(widgets, "w", "merge", {"spec": {"size": 2}})["spec"] == {"size": 2}
    t.delete(widgets, "w")
    t.gone(widgets, "w")


@behaviour(pages.BINDING, Via.RAW | Via.PYTHON)
def a_binding_object_binds_the_pod_of_its_name(t: Case) -> None:
    node, _ = t.node(), t.given(r.PODS, r.pod("p"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": node},
    }
    if t.by_raw:
        t.raw.call("POST", f"/api/v1/namespaces/{t.ns}/bindings", body=binding)
    else:
        t.python.typed().create_namespaced_binding(t.ns, binding, _preload_content=False)
    assert t.now(r.PODS, "p")["spec"]["nodeName"] == node


@behaviour(pages.EVENT, Via.RAW | Via.KUBECTL)
def both_event_apis_show_the_same_event(t: Case) -> None:
    t.given(r.EVENTS, r.event("e", t.ns) | {"count": 3})
    found = t.get(r.NEW_EVENTS, "e")
    assert (found["note"], found["reason"], found["type"]) == ("as the list does", "Tested", "Normal")
    assert found["regarding"]["name"] == "thing" and found["deprecatedCount"] == 3
    t.given(r.NEW_EVENTS, r.new_event("n", t.ns))
    old = t.get(r.EVENTS, "n")
    assert (old["message"], old["involvedObject"]["name"]) == ("as the list does", "thing")
    assert (old["reportingComponent"], old["action"]) == ("example.com/list", "Testing")
