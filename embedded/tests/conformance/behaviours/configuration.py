"""ConfigMaps, Secrets, Services, Nodes, Leases, classes, quotas, budgets: what each type promises of its own."""

from __future__ import annotations

import base64
import functools

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, SECRETS, config_map

_VALID_KEY = "must consist of alphanumeric characters"


@behaviour(pages.CONFIG_MAP + "#configmap-immutable", fast=Via.ALL)
def an_immutable_config_map_keeps_its_data(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m") | {"immutable": True})
    with t.refused("Invalid", "data", "immutable"):
        t.patch(CONFIG_MAPS, "m", "merge", {"data": {"key": "new"}})
    with t.refused("Invalid", "immutable"):
        t.patch(CONFIG_MAPS, "m", "merge", {"immutable": False})
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"labels": {"still": "mutable"}}})


@behaviour(pages.CONFIG_MAP, Via.CODE)
def a_config_map_key_has_letters_digits_and_few_signs(t: Case) -> None:
    with t.refused("Invalid", "data[not/ok]", _VALID_KEY):
        t.create(CONFIG_MAPS, CONFIG_MAPS.object("m", data={"not/ok": "x"}))


@behaviour(pages.CONFIG_MAP, Via.CODE)
def text_and_binary_data_share_no_key(t: Case) -> None:
    with t.refused("Invalid", "binaryData" if t.by_raw else "key"):
        t.create(CONFIG_MAPS, config_map("m") | {"binaryData": {"key": "eA=="}})


@behaviour(pages.CONFIG_MAP, Via.RAW | Via.KUBECTL)
def binary_data_is_base64(t: Case) -> None:
    assert t.create(CONFIG_MAPS, CONFIG_MAPS.object("ok", binaryData={"a": "eA=="}))["binaryData"] == {"a": "eA=="}
    with t.refused("BadRequest", "base64"):
        t.create(CONFIG_MAPS, CONFIG_MAPS.object("m", binaryData={"a": "not base64!"}))


@behaviour(pages.CONFIG_MAP, Via.CODE)
def a_config_map_has_at_most_one_mebibyte(t: Case) -> None:
    with t.refused("Invalid", "1048576"):
        t.create(CONFIG_MAPS, config_map("m", big="x" * 1_048_577))


@behaviour(pages.SECRET, fast=Via.ALL)
def string_data_becomes_data(t: Case) -> None:
    t.create(SECRETS, SECRETS.object("s", data={"a": "MQ==", "b": "Mg=="}, stringData={"b": "two", "c": "three"}))
    found = t.get(SECRETS, "s")
    assert {key: base64.b64decode(value) for key, value in found["data"].items()} == {
        "a": b"1",
        "b": b"two",
        "c": b"three",
    }
    assert "stringData" not in found


@behaviour(pages.SECRET + "#opaque-secrets", Via.CODE)
def a_secret_is_opaque_unless_it_says_otherwise(t: Case) -> None:
    assert t.create(SECRETS, SECRETS.object("s"))["type"] == "Opaque"


@behaviour(pages.SECRET, Via.CODE)
def the_type_of_a_secret_stays(t: Case) -> None:
    t.given(SECRETS, SECRETS.object("s"))
    with t.refused("Invalid", "type", "field is immutable"):
        t.patch(SECRETS, "s", "merge", {"type": "example.com/other"})


@behaviour(pages.SECRET + "#tls-secrets")
def a_tls_secret_has_certificate_and_key(t: Case) -> None:
    with t.refused("Invalid", "data[tls.key]", "Required value"):
        t.create(SECRETS, SECRETS.object("s", type="kubernetes.io/tls", data={"tls.crt": "eA=="}))


@behaviour(pages.SECRET + "#docker-config-secrets", Via.CODE)
def a_docker_secret_has_its_configuration(t: Case) -> None:
    with t.refused("Invalid", "data[.dockerconfigjson]"):
        t.create(SECRETS, SECRETS.object("s", type="kubernetes.io/dockerconfigjson", data={"a": "eA=="}))


@behaviour(pages.SECRET + "#secret-immutable", Via.CODE)
def an_immutable_secret_keeps_its_data(t: Case) -> None:
    t.given(SECRETS, SECRETS.object("s", data={"a": "MQ=="}, immutable=True))
    with t.refused("Invalid", "immutable"):
        t.patch(SECRETS, "s", "merge", {"data": {"a": "Mg=="}})


@behaviour(pages.SERVICE)
def a_service_has_its_defaults(t: Case) -> None:
    spec = t.create(r.SERVICES, r.service("s", clusterIP="None"))["spec"]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
    assert (spec["ports"][0]["protocol"], spec["ports"][0]["targetPort"]) == ("TCP", 80)


@behaviour(pages.SERVICE + "#multi-port-services", Via.CODE)
def the_ports_of_a_service_have_names_when_there_are_several(t: Case) -> None:
    with t.refused("Invalid", "spec.ports[0].name"):
        t.create(r.SERVICES, r.service("s", ports=[{"port": 80}, {"port": 81}]))


@behaviour(pages.SERVICE, Via.CODE)
def the_port_of_a_service_is_between_1_and_65535(t: Case) -> None:
    with t.refused("Invalid", "spec.ports[0].port"):
        t.create(r.SERVICES, r.service("s", ports=[{"port": 65536}]))


@behaviour(pages.SERVICE_ACCOUNT + "#default-service-accounts", Via.CODE, needs="controllers")
def a_namespace_gets_a_default_service_account(t: Case) -> None:
    t.eventually(lambda: t.exists(r.SERVICE_ACCOUNTS, "default"), "the default ServiceAccount")
    assert "default" in [item["metadata"]["name"] for item in t.list(r.SERVICE_ACCOUNTS)]


@behaviour(pages.QUOTA, Via.CODE)
def a_quota_keeps_its_amounts_in_canonical_form(t: Case) -> None:
    hard = {"requests.cpu": "1000m", "limits.memory": "2048Mi", "pods": "4"}
    found = t.create(r.QUOTAS, r.QUOTAS.object("q", spec={"hard": hard}))
    assert found["spec"]["hard"] == {"requests.cpu": "1", "limits.memory": "2Gi", "pods": "4"}


@behaviour(pages.NODE)
def a_node_keeps_taints_and_unschedulable(t: Case) -> None:
    taint = {"key": "example.com/only", "value": "yes", "effect": "NoSchedule"}
    name = t.unique("node")
    found = t.create(r.NODES, r.NODES.object(name, spec={"taints": [taint], "unschedulable": True}))
    assert taint in found["spec"]["taints"] and found["spec"]["unschedulable"] is True


@behaviour(pages.TAINTS, Via.CODE)
def a_taint_has_a_known_effect(t: Case) -> None:
    with t.refused("Invalid", "effect"):
        spec = {"taints": [{"key": "a", "effect": "Whatever"}]}
        t.create(r.NODES, r.NODES.object(t.unique("node"), spec=spec))


@behaviour(pages.TAINTS, Via.CODE)
def a_taint_of_key_and_effect_is_unique(t: Case) -> None:
    name, taint = t.node(), {"key": "example.com/a", "effect": "NoSchedule"}
    with t.refused("Invalid", "taints"):
        t.patch(r.NODES, name, "merge", {"spec": {"taints": [taint, taint | {"value": "x"}]}})


@behaviour(pages.ADMISSION + "#taintnodesbycondition", Via.CODE)
def a_new_node_is_tainted_as_not_ready(t: Case) -> None:
    # As created: a controller may take the taint away at once.
    taints = t.create(r.NODES, r.NODES.object(t.unique("node")))["spec"]["taints"]
    assert ("node.kubernetes.io/not-ready", "NoSchedule") in [(taint["key"], taint["effect"]) for taint in taints]


@behaviour(pages.TAINTS, Via.ALL, needs="controllers")
def an_unschedulable_node_is_tainted(t: Case) -> None:
    name = t.node()
    t.patch(r.NODES, name, "merge", {"spec": {"unschedulable": True}})
    taint = ("node.kubernetes.io/unschedulable", "NoSchedule")

    def tainted() -> bool:
        taints = t.now(r.NODES, name)["spec"].get("taints", [])
        return taint in [(found["key"], found["effect"]) for found in taints]

    t.eventually(tainted, "the taint")


@behaviour(pages.LEASE)
def a_lease_keeps_microseconds(t: Case) -> None:
    moment = "2026-01-02T03:04:05.123456Z"
    t.create(r.LEASES, r.lease("l", renewTime=moment, leaseTransitions=2))
    spec = t.now(r.LEASES, "l")["spec"]
    assert (spec["renewTime"], spec["leaseTransitions"]) == (moment, 2)


@behaviour(pages.LEASE, Via.CODE)
def a_lease_lasts_longer_than_nothing(t: Case) -> None:
    with t.refused("Invalid", "spec.leaseDurationSeconds", "must be greater than 0"):
        t.create(r.LEASES, r.lease("l", leaseDurationSeconds=0))


@behaviour(pages.PRIORITY)
def the_value_of_a_priority_class_stays(t: Case) -> None:
    name = t.unique("class")
    t.given(r.PRIORITY_CLASSES, r.priority_class(name))
    with t.refused("Invalid", "value"):
        t.patch(r.PRIORITY_CLASSES, name, "merge", {"value": 5})


@behaviour(pages.PRIORITY, Via.CODE)
def a_priority_above_a_billion_is_for_the_system(t: Case) -> None:
    with t.refused("Invalid", "value"):
        t.create(r.PRIORITY_CLASSES, r.priority_class(t.unique("class"), 1_000_000_001))


@behaviour(pages.PRIORITY, Via.CODE)
def a_priority_class_of_a_user_has_no_system_name(t: Case) -> None:
    with t.refused("Invalid", "metadata.name", "system-"):
        t.create(r.PRIORITY_CLASSES, r.priority_class(t.unique("system-class")))


@behaviour(pages.PRIORITY, Via.CODE)
def the_system_priority_classes_exist(t: Case) -> None:
    found = {item["metadata"]["name"]: item["value"] for item in t.list(r.PRIORITY_CLASSES)}
    assert found["system-cluster-critical"] == 2_000_000_000 and found["system-node-critical"] == 2_000_001_000


@behaviour(pages.PRIORITY, Via.CODE)
def a_priority_class_preempts_lower_ones_unless_it_says_otherwise(t: Case) -> None:
    found = t.create(r.PRIORITY_CLASSES, r.priority_class(t.unique("class")))
    assert found["preemptionPolicy"] == "PreemptLowerPriority"


@behaviour(pages.DISRUPTIONS)
def a_budget_has_one_bound(t: Case) -> None:
    with t.refused("Invalid", "minAvailable and maxUnavailable cannot be both set"):
        t.create(r.BUDGETS, r.budget("b", "web", minAvailable=1, maxUnavailable=1))


@behaviour(pages.DISRUPTIONS, Via.CODE)
def a_budget_bound_is_a_number_or_a_percentage(t: Case) -> None:
    assert t.create(r.BUDGETS, r.budget("ok", "web", minAvailable="50%"))["spec"]["minAvailable"] == "50%"
    with t.refused("Invalid", "spec.minAvailable"):
        t.create(r.BUDGETS, r.budget("b", "web", minAvailable="half"))


@behaviour(pages.DISRUPTIONS, Via.CODE, needs="controllers")
def a_budget_counts_its_pods(t: Case) -> None:
    for name, healthy in (("a", "True"), ("b", "False"), ("c", "True")):
        t.given(r.PODS, r.pod(name, {"app": "web"}, nodeName=t.node()))
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": healthy}]}
        t.change(r.PODS, name, {"status": status}, "status")
        t.defer(functools.partial(t.raw.delete, r.PODS, t.ns, name, grace=0))
    t.create(r.BUDGETS, r.budget("b", "web", minAvailable=1))

    def counted() -> bool:
        status = t.now(r.BUDGETS, "b").get("status", {})
        keys = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        return [status.get(key) for key in keys] == [3, 2, 1, 1]

    t.eventually(counted, "the budget's status")


@behaviour(pages.EVENT, Via.CODE)
def an_event_is_in_the_namespace_of_what_it_is_about(t: Case) -> None:
    with t.refused("Invalid", "involvedObject.namespace"):
        t.create(r.EVENTS, r.event("e", "another"))


@behaviour(pages.EVENT, Via.CODE)
def a_new_event_says_when_who_and_what(t: Case) -> None:
    incomplete = r.new_event("e", t.ns)
    incomplete.pop("eventTime")
    t.create(r.NEW_EVENTS, r.new_event("ok", t.ns))
    if t.by_raw:
        with t.refused("Invalid", "eventTime"):
            t.create(r.NEW_EVENTS, incomplete)
    assert t.now(r.NEW_EVENTS, "ok")["eventTime"] == "2026-01-02T03:04:05.123456Z"
