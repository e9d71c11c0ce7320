"""What only programs on the official Python client do: informers, leader election, dynamic and asynchronous clients."""

from __future__ import annotations

import asyncio
import threading

import kubernetes

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, config_map


@behaviour(pages.WATCH, Via.PYTHON)
def an_informer_keeps_up_with_its_collection(t: Case) -> None:
    from kubernetes.informer import ADDED, SharedInformer

    t.given(CONFIG_MAPS, config_map("before"))
    informer = SharedInformer(t.python.typed().list_namespaced_config_map, namespace=t.ns)
    added = threading.Event()
    informer.add_event_handler(ADDED, lambda obj: added.set())
    informer.start()
    try:
        t.eventually(lambda: informer.cache.get_by_key(f"{t.ns}/before"), "the first object")
        t.given(CONFIG_MAPS, config_map("after"))
        t.eventually(lambda: informer.cache.get_by_key(f"{t.ns}/after"), "the second object")
        t.raw.delete(CONFIG_MAPS, t.ns, "before")
        t.eventually(lambda: informer.cache.get_by_key(f"{t.ns}/before") is None, "the first object gone")
        assert added.is_set()
    finally:
        informer.stop()


@behaviour(pages.LEASE, Via.PYTHON, Via.NONE)
def a_leader_is_elected_by_a_lease(t: Case) -> None:
    from kubernetes.leaderelection import electionconfig, leaderelection
    from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

    led = threading.Event()

    def lead() -> None:
        led.set()

    lock = LeaseLock("leader", t.ns, "candidate-1")
    lock.api_instance = t.python.typed("coordination.k8s.io")
    config = electionconfig.Config(
        lock, lease_duration=3, renew_deadline=2, retry_period=1, onstarted_leading=lead, onstopped_leading=lambda: None
    )
    candidate = threading.Thread(target=leaderelection.LeaderElection(config).run, daemon=True)
    candidate.start()
    t.eventually(led.is_set, "a leader")
    spec = t.now(r.LEASES, "leader")["spec"]
    assert spec["holderIdentity"] == "candidate-1" and spec["leaseDurationSeconds"] == 3
    t.change(r.LEASES, "leader", {"spec": {"holderIdentity": "candidate-2"}})
    candidate.join(timeout=60)  # it gives up what another holds
    assert not candidate.is_alive()


@behaviour(pages.LIBRARIES, Via.PYTHON)
def the_dynamic_client_finds_types_by_kind(t: Case) -> None:
    from kubernetes.dynamic import DynamicClient

    client = DynamicClient(t.python.api)
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(namespace=t.ns, body=config_map("m"))
    found = maps.patch(
        namespace=t.ns, name="m", body={"data": {"key": "new"}}, content_type="application/merge-patch+json"
    )
    assert found.data.key == "new"
    assert [item.metadata.name for item in maps.get(namespace=t.ns, field_selector="metadata.name=m").items] == ["m"]
    maps.server_side_apply(namespace=t.ns, name="s", body=config_map("s"), field_manager="dynamic")
    maps.delete(namespace=t.ns, name="m")
    assert not t.exists(CONFIG_MAPS, "m") and t.exists(CONFIG_MAPS, "s")


@behaviour(pages.LIBRARIES, Via.PYTHON)
def the_dynamic_client_speaks_of_custom_objects(t: Case) -> None:
    from kubernetes.dynamic import DynamicClient

    custom = t.custom({"type": "object", "properties": {"size": {"type": "integer"}}})
    resource = DynamicClient(t.python.api).resources.get(api_version=custom.api_version, kind="Widget")
    assert resource.create(namespace=t.ns, body=custom.object("w", spec={"size": 1})).spec.size == 1
    assert resource.get(namespace=t.ns, name="w").metadata.name == "w"


@behaviour(pages.LIBRARIES, Via.PYTHON)
def the_asynchronous_client_does_the_same(t: Case) -> None:
    from kubernetes import aio

    async def run() -> list[str]:
        configuration = aio.client.Configuration()
        await aio.config.load_kube_config(t.kubeconfig, client_configuration=configuration)
        async with aio.client.ApiClient(configuration) as api:
            core = aio.client.CoreV1Api(api)
            await core.create_namespaced_config_map(t.ns, config_map("m"))
            found = await core.list_namespaced_config_map(t.ns, field_selector="metadata.name=m")
            return [item.metadata.name for item in found.items]

    assert asyncio.run(run()) == ["m"]


@behaviour(pages.LIBRARIES, Via.PYTHON)
def manifests_are_created_from_yaml(t: Case) -> None:
    objects = [config_map("m"), r.job("j", suspend=True), r.cron_job("c")]
    kubernetes.utils.create_from_yaml(t.python.api, yaml_objects=objects, namespace=t.ns)
    assert t.exists(CONFIG_MAPS, "m") and t.exists(r.JOBS, "j") and t.exists(r.CRON_JOBS, "c")


@behaviour(pages.CHUNKS, Via.PYTHON)
def the_python_client_follows_pages(t: Case) -> None:
    for name in ("a", "b", "c"):
        t.given(r.LEASES, r.lease(name))
    api = t.python.typed("coordination.k8s.io")
    first = api.list_namespaced_lease(t.ns, limit=2)
    assert first.metadata.remaining_item_count == 1
    rest = api.list_namespaced_lease(t.ns, limit=2, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + rest.items] == ["a", "b", "c"]


@behaviour(pages.QUANTITY, Via.PYTHON)
def the_typed_models_read_every_default(t: Case) -> None:
    from kubernetes.utils.quantity import parse_quantity

    created = t.python.typed().create_namespaced_pod(
        t.ns, r.pod("p", containers=[r.container(resources={"limits": {"cpu": "1500m", "memory": "1Gi"}})])
    )
    limits = created.spec.containers[0].resources.limits
    assert parse_quantity(limits["cpu"]) * 2 == 3 and parse_quantity(limits["memory"]) == 2**30
    assert created.metadata.creation_timestamp.tzinfo is not None


@behaviour(pages.CUSTOM_STATUS, Via.PYTHON)
def a_custom_status_is_replaced_through_its_api(t: Case) -> None:
    custom = t.custom({"type": "object", "properties": {"size": {"type": "integer"}}}, subresources={"status": {}})
    obj = t.given(custom, custom.object("w", spec={"size": 1}))
    found = t.replace(custom, obj | {"spec": {"size": 2}, "status": {"seen": True}}, subresource="status")
    assert (found["spec"], found["status"]) == ({"size": 1}, {"seen": True})
