"""What Services, Endpoints, Jobs, NetworkPolicies, Secrets, nodes and volumes are refused for, and what they are given.

Places and words are those of kube-apiserver 1.34.2.
"""

import base64

import pytest

from embedded.apiserver.apimachinery.objects import dig

NS = "/api/v1/namespaces/default"
SERVICES, JOBS = f"{NS}/services", "/apis/batch/v1/namespaces/default/jobs"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
NODES, VOLUMES, CLAIMS = "/api/v1/nodes", "/api/v1/persistentvolumes", f"{NS}/persistentvolumeclaims"
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}


def service(name="s", **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


def job(labels=None, **spec):
    template = TEMPLATE | ({"metadata": {"labels": labels}} if labels else {})
    return {"metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def policy(**spec):
    return {"metadata": {"name": "n"}, "spec": {"podSelector": {}, **spec}}


def ports(*found):
    return policy(ingress=[{"ports": list(found)}])


def peers(*found):
    return policy(ingress=[{"from": list(found)}])


def secret(kind, **data):
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "s"}, "type": f"kubernetes.io/{kind}", "data": encoded}


def volume(**spec):
    whole = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}, **spec}
    return {"metadata": {"name": "v"}, "spec": whole}


def endpoints(address="10.0.0.1", port=80, **more):
    return {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": address}], "ports": [{"port": port, **more}]}]}


BALANCED = "may only be used when `type` is 'LoadBalancer'"
REFUSED = {
    "external address": (SERVICES, service(externalIPs=["x"]), "spec.externalIPs[0]", "valid IP address"),
    "the machine's own": (SERVICES, service(externalIPs=["127.0.0.1"]), "spec.externalIPs[0]", "loopback range"),
    "policy inside": (SERVICES, service(internalTrafficPolicy="x"), "spec.internalTrafficPolicy", "Unsupported value"),
    "policy for nobody": (
        SERVICES,
        service(externalTrafficPolicy="Local"),
        "spec.externalTrafficPolicy",
        "externally-accessible",
    ),
    "IPv6": (SERVICES, service(ipFamilies=["IPv6"]), "spec.ipFamilies[0]", "not configured on this cluster"),
    "both families": (SERVICES, service(ipFamilyPolicy="RequireDualStack"), "spec.ipFamilyPolicy", "dual-stack"),
    "address of IPv6": (SERVICES, service(clusterIP="fd00::1"), "spec.clusterIPs[0]", "IPv6 is not configured"),
    "name elsewhere": (
        SERVICES,
        service(type="ExternalName", externalName="A_b"),
        "spec.externalName",
        "RFC 1123 subdomain",
    ),
    "balancer's class": (SERVICES, service(loadBalancerClass="a/b"), "spec.loadBalancerClass", BALANCED),
    "balancer's ports": (
        SERVICES,
        service(allocateLoadBalancerNodePorts=True),
        "spec.allocateLoadBalancerNodePorts",
        BALANCED,
    ),
    "range of sources": (
        SERVICES,
        service(type="LoadBalancer", loadBalancerSourceRanges=["x"]),
        "spec.LoadBalancerSourceRanges[0]",
        "must be a valid CIDR value",
    ),
    "health of nothing": (SERVICES, service(healthCheckNodePort=30000), "spec.healthCheckNodePort", "may only be set"),
    "affinity for no time": (
        SERVICES,
        service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 0}}),
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        "must be greater than 0 and less than 86400",
    ),
    "distribution": (SERVICES, service(trafficDistribution="x"), "spec.trafficDistribution", "Unsupported value"),
    "node port out of range": (
        SERVICES,
        service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
        "spec.ports[0].nodePort",
        "The range of valid ports is 30000-32767",
    ),
    "node port twice": (
        SERVICES,
        service(
            type="NodePort",
            ports=[{"name": "a", "port": 1, "nodePort": 30001}, {"name": "b", "port": 2, "nodePort": 30001}],
        ),
        "spec.ports[1].nodePort",
        "provided port is already allocated",
    ),
    "endpoint of no address": (f"{NS}/endpoints", endpoints("x"), "subsets[0].addresses[0].ip", "valid IP address"),
    "endpoint here": (f"{NS}/endpoints", endpoints("127.0.0.1"), "subsets[0].addresses[0].ip", "loopback range"),
    "endpoint nearby": (f"{NS}/endpoints", endpoints("169.254.1.1"), "subsets[0].addresses[0].ip", "link-local range"),
    "endpoint everywhere": (f"{NS}/endpoints", endpoints("0.0.0.0"), "subsets[0].addresses[0].ip", "unspecified"),
    "endpoint without port": (f"{NS}/endpoints", endpoints(port=0), "subsets[0].ports[0].port", "between 1 and 65535"),
    "endpoint's protocol": (f"{NS}/endpoints", endpoints(protocol="x"), "subsets[0].ports[0].protocol", "Unsupported"),
    "a family twice": (SERVICES, service(ipFamilies=["IPv4"] * 2), "spec.ipFamilies[1]", "Duplicate value"),
    "an address by another name": (
        SERVICES,
        service(type="ExternalName", externalName="a.b", clusterIP="10.96.0.9"),
        "spec.clusterIPs",
        "may not be set for ExternalName services",
    ),
    "a hint twice": (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "e"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "z"}, {"name": "z"}]}}],
        },
        "endpoints[0].hints.forZones[1].name",
        "Duplicate value",
    ),
    "a hint": (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "e"},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "a b"}]}}],
        },
        "endpoints[0].hints.forZones[0].name",
        "a valid label must be",
    ),
    "codes without order": (
        JOBS,
        job(podFailurePolicy={"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [2, 1]}}]}),
        "spec.podFailurePolicy.rules[0].onExitCodes.values",
        "must be ordered",
    ),
    "more successes than completions": (
        JOBS,
        job(completionMode="Indexed", completions=3, successPolicy={"rules": [{"succeededCount": 4}]}),
        "spec.successPolicy.rules[0].succeededCount",
        "less than or equal to 3 (the number of specified completions)",
    ),
    "more successes than indexes": (
        JOBS,
        job(
            completionMode="Indexed",
            completions=9,
            successPolicy={"rules": [{"succeededIndexes": "1,3-4", "succeededCount": 4}]},
        ),
        "spec.successPolicy.rules[0].succeededCount",
        "less than or equal to 3 (the number of indexes in the specified succeededIndexes field)",
    ),
    "an index too many": (
        JOBS,
        job(completionMode="Indexed", completions=3, successPolicy={"rules": [{"succeededIndexes": "0-99999999999"}]}),
        "spec.successPolicy.rules[0].succeededIndexes",
        'error parsing succeededIndexes: too large index: "99999999999"',
    ),
    "a selector of one's own": (
        JOBS,
        job({"a": "b"}, selector={"matchLabels": {"a": "b"}}),
        "spec.selector",
        "`selector` not auto-generated",
    ),
    "no selector": (JOBS, job(manualSelector=True), "spec.selector", "Required value"),
    "a selector of others": (
        JOBS,
        job({"a": "c"}, manualSelector=True, selector={"matchLabels": {"a": "b"}}),
        "spec.template.metadata.labels",
        "`selector` does not match template `labels`",
    ),
    "a manager": (JOBS, job(managedBy="x"), "spec.managedBy", "must be a domain-prefixed path"),
    "a label of the controller's": (
        JOBS,
        job({"controller-uid": "x"}),
        "spec.template.metadata.labels[controller-uid]",
        "must be '",
    ),
    "an exit code twice": (
        JOBS,
        job(podFailurePolicy={"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [2, 2]}}]}),
        "spec.podFailurePolicy.rules[0].onExitCodes.values[1]",
        "Duplicate value: 2",
    ),
    "a policy's labels": (
        POLICIES,
        policy(podSelector={"matchLabels": {"a b": "c"}}),
        "spec.podSelector.matchLabels",
        "name part must consist of",
    ),
    "a policy's type": (POLICIES, policy(policyTypes=["x"]), "spec.policyTypes[0]", "Unsupported value"),
    "a range": (POLICIES, peers({"ipBlock": {"cidr": "x"}}), "spec.ingress[0].from[0].ipBlock.cidr", "valid CIDR"),
    "an exception elsewhere": (
        POLICIES,
        peers({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}),
        "spec.ingress[0].from[0].ipBlock.except[0]",
        "must be a strict subset of `cidr`",
    ),
    "nobody": (POLICIES, peers({}), "spec.ingress[0].from[0]", "must specify a peer"),
    "a peer of two kinds": (
        POLICIES,
        peers({"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}),
        "spec.ingress[0].from[0]",
        "may not specify both ipBlock and another peer",
    ),
    "port zero": (POLICIES, ports({"port": 0}), "spec.ingress[0].ports[0].port", "between 1 and 65535"),
    "ports backwards": (
        POLICIES,
        ports({"port": 80, "endPort": 70}),
        "spec.ingress[0].ports[0].endPort",
        "must be greater than or equal to `port`",
    ),
    "the end of a name": (
        POLICIES,
        ports({"port": "web", "endPort": 70}),
        "spec.ingress[0].ports[0].endPort",
        "when `port` is non-numeric",
    ),
    "neither user nor password": (f"{NS}/secrets", secret("basic-auth"), "data[username]", "Required value"),
    "no registry": (
        f"{NS}/secrets",
        secret("dockerconfigjson", **{".dockerconfigjson": "x"}),
        "data[.dockerconfigjson]",
        "<secret contents redacted>",
    ),
    "no key": (f"{NS}/secrets", secret("ssh-auth", **{"ssh-privatekey": ""}), "data[ssh-privatekey]", "Required value"),
    "a node's range": (NODES, {"metadata": {"name": "n"}, "spec": {"podCIDR": "x"}}, "spec.podCIDRs[0]", "valid CIDR"),
    "a label of no node": (
        VOLUMES,
        volume(
            nodeAffinity={
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}]
                }
            }
        ),
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]",
        "a valid label must be",
    ),
    "a scope of nothing": (
        f"{NS}/resourcequotas",
        {
            "metadata": {"name": "q"},
            "spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}},
        },
        "spec.scopeSelector.matchExpressions.values",
        "must be at least one value",
    ),
    "a volume of no server": (
        VOLUMES,
        {
            "metadata": {"name": "v"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "nfs": {"server": "", "path": "x"},
            },
        },
        "spec.nfs.path",
        "must be an absolute path",
    ),
    "a claim of nothing": (
        CLAIMS,
        {
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1"}},
                "dataSource": {"kind": "PersistentVolumeClaim", "name": ""},
            },
        },
        "spec.dataSource.name",
        "Required value",
    ),
    "long parameters": (
        CLASSES,
        {"metadata": {"name": "s"}, "provisioner": "a/b", "parameters": {"x": "y" * (1 << 18)}},
        "parameters",
        "may not be more than 262144 bytes",
    ),
    "a generation": (
        f"{NS}/configmaps",
        {"metadata": {"name": "c", "generation": -1}},
        "metadata.generation",
        "must be greater than or equal to 0",
    ),
    "half a device": (
        NODES,
        {"metadata": {"name": "n"}, "status": {"capacity": {"example.com/gpu": "1500m"}}},
        "status.capacity.example.com/gpu",
        "must be an integer",
    ),
    "a volume of nothing": (
        VOLUMES,
        volume(capacity={"storage": "0"}),
        "spec.capacity[storage]",
        "must be greater than zero",
    ),
    "a volume upwards": (VOLUMES, volume(hostPath={"path": "/a/.."}), "spec.hostPath.path", "must not contain '..'"),
    "a volume nowhere": (VOLUMES, volume(nodeAffinity={}), "spec.nodeAffinity.required", "must specify required node"),
    "a provisioner": (
        CLASSES,
        {"metadata": {"name": "s"}, "provisioner": "a b"},
        "provisioner",
        "name part must consist of",
    ),
    "a parameter without name": (
        CLASSES,
        {"metadata": {"name": "s"}, "provisioner": "a/b", "parameters": {"": "x"}},
        "parameters",
        "field can not be empty.",
    ),
}


@pytest.mark.parametrize(("url", "body", "field", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(api, url, body, field, words):
    """With its place."""
    code, status = api.call("POST", url, body)
    assert code == 422, status
    told = {cause["field"]: cause["message"] for cause in status["details"]["causes"]}
    assert words in told[field], told


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ({"apiVersion": "v1", "kind": "Event"}, "/v1, Kind=Event is disallowed from being an owner"),
        ({"apiVersion": "a/b/c", "kind": "X"}, "version must not be empty"),
    ],
)
def test_who_owns_nothing(api, owner, words):
    """Events, and kinds of no version."""
    meta = {"name": "x", "ownerReferences": [{**owner, "name": "a", "uid": "b"}]}
    code, status = api.call("POST", f"{NS}/configmaps", {"metadata": meta})
    assert code == 422 and words in status["message"], status


def test_a_service_of_nodes_has_ports_there(api):
    """In their range, each its own, the same when it is made again; those asked for are kept."""
    made = api.post(SERVICES, service(type="NodePort", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
    numbers = [port["nodePort"] for port in made["spec"]["ports"]]
    assert len(set(numbers)) == 2 and all(30000 <= number <= 32767 for number in numbers)
    assert made["spec"]["externalTrafficPolicy"] == "Cluster" and "allocateLoadBalancerNodePorts" not in made["spec"]
    asked = service("t", type="NodePort", ports=[{"port": 1, "nodePort": numbers[0]}])
    code, status = api.call("POST", SERVICES, asked)
    assert code == 422 and "provided port is already allocated" in status["message"]
    api.call("DELETE", f"{SERVICES}/s")
    again = api.post(SERVICES, service(type="NodePort", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]))
    assert [port["nodePort"] for port in again["spec"]["ports"]] == numbers


def test_one_port_of_two_protocols_is_one_on_nodes(api):
    """As DNS has it."""
    both = [{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}]
    made = api.post(SERVICES, service(type="NodePort", ports=both))["spec"]["ports"]
    assert made[0]["nodePort"] == made[1]["nodePort"]


def test_a_load_balancer_has_what_nodes_need(api):
    """Ports unless it wants none, and one for their health where traffic stays on a node."""
    made = api.post(SERVICES, service(type="LoadBalancer", externalTrafficPolicy="Local"))["spec"]
    assert made["allocateLoadBalancerNodePorts"] is True and made["ports"][0]["nodePort"]
    assert 30000 <= made["healthCheckNodePort"] <= 32767
    bare = api.post(SERVICES, service("bare", type="LoadBalancer", allocateLoadBalancerNodePorts=False))["spec"]
    assert "nodePort" not in bare["ports"][0] and "healthCheckNodePort" not in bare


def test_what_belongs_to_a_type_goes_with_it(api):
    """And comes back with it; a manifest that does not mention a port keeps it."""
    number = api.post(SERVICES, service(type="NodePort"))["spec"]["ports"][0]["nodePort"]
    code, kept = api.call("PUT", f"{SERVICES}/s", service(type="NodePort"))
    assert (code, kept["spec"]["ports"][0]["nodePort"]) == (200, number)
    _, inside = api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})
    assert "nodePort" not in inside["spec"]["ports"][0] and "externalTrafficPolicy" not in inside["spec"]
    _, outside = api.patch(f"{SERVICES}/s", {"spec": {"type": "LoadBalancer"}})
    assert outside["spec"]["ports"][0]["nodePort"] == number
    _, named = api.patch(f"{SERVICES}/s", {"spec": {"type": "ExternalName", "externalName": "a.b"}})
    gone = {"clusterIP", "externalTrafficPolicy", "internalTrafficPolicy", "allocateLoadBalancerNodePorts"}
    assert not gone & named["spec"].keys()


def test_an_affinity_lasts_three_hours(api):
    """And one that is none has no settings."""
    made = api.post(SERVICES, service(sessionAffinity="ClientIP"))["spec"]
    assert made["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    other = service("t", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10}})
    assert "sessionAffinityConfig" not in api.post(SERVICES, other)["spec"]


@pytest.mark.parametrize("field", ["spec.clusterIP", "spec.type"])
def test_services_are_selected_by_what_they_are(api, field):
    """As kubectl's users do."""
    api.post(SERVICES, service(clusterIP="None"))
    value = {"spec.clusterIP": "None", "spec.type": "ClusterIP"}[field]
    assert "s" in [item["metadata"]["name"] for item in api.get(f"{SERVICES}?fieldSelector={field}={value}")["items"]]
    assert api.get(f"{SERVICES}?fieldSelector={field}=x")["items"] == []


def test_replica_sets_are_not_selected_by_their_status(api):
    """Nor anywhere else."""
    code, _ = api.call("GET", "/apis/apps/v1/replicasets?fieldSelector=status.replicas=0")
    assert code == 400


def test_a_node_keeps_its_place(api):
    """Its range and its provider's name are settled once."""
    api.post(NODES, {"metadata": {"name": "n"}, "spec": {"podCIDR": "10.1.0.0/24", "providerID": "a"}})
    assert api.get(f"{NODES}/n")["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    for change, word in (({"podCIDR": "10.2.0.0/24"}, "podCIDR"), ({"providerID": "b"}, "providerID")):
        code, status = api.patch(f"{NODES}/n", {"spec": change})
        assert code == 422 and f'node updates may not change {word} except from "" to valid' in status["message"]


def test_a_claim_grows_when_it_is_bound(api):
    """And never shrinks."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "x"}
    api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    bigger, smaller = ({"spec": {"resources": {"requests": {"storage": size}}}} for size in ("2Gi", "1Mi"))
    code, status = api.patch(f"{CLAIMS}/c", bigger)
    assert code == 422 and "spec is immutable after creation except" in status["message"]
    api.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound"}})
    assert api.patch(f"{CLAIMS}/c", bigger)[0] == 200
    code, status = api.patch(f"{CLAIMS}/c", smaller)
    assert code == 422 and "spec.resources.requests.storage" in status["message"]


def test_a_volume_keeps_its_mode(api):
    """Files stay files."""
    api.post(VOLUMES, volume())
    code, status = api.patch(f"{VOLUMES}/v", {"spec": {"volumeMode": "Block"}})
    assert code == 422 and "volumeMode: Invalid value" in status["message"]


COUNTERS = {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"}
WORKLOAD = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
}
THERE = {
    "jobs": (JOBS, job(suspend=True), {"status": {}, "spec.manualSelector": False}),
    "cron jobs": (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {"metadata": {"name": "j"}, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": TEMPLATE}}}},
        {"status": {}, "spec.jobTemplate.metadata": {}, "spec.jobTemplate.spec.template.metadata": {}},
    ),
    "daemon sets": (
        "/apis/apps/v1/namespaces/default/daemonsets",
        {"metadata": {"name": "d"}, "spec": WORKLOAD},
        {f"status.{counter}": 0 for counter in COUNTERS},
    ),
    "budgets": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        {"status.disruptionsAllowed": 0, "status.currentHealthy": 0, "status.expectedPods": 0},
    ),
    "nodes": (
        NODES,
        {"metadata": {"name": "n"}},
        {"status.nodeInfo.kubeletVersion": "", "status.daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}},
    ),
    "volumes": (VOLUMES, volume(), {"spec.hostPath.type": ""}),
}


@pytest.mark.parametrize(("url", "body", "wanted"), THERE.values(), ids=THERE)
def test_what_is_there_also_while_it_is_empty(api, url, body, wanted):
    """Go writes some zeros, and its clients read them without asking."""
    made = api.post(url, body)
    assert {path: dig(made, path, "absent") for path in wanted} == wanted


def test_what_is_being_deleted_has_another_generation(api):
    """For who compares it with what a controller has observed."""
    made = api.post(JOBS, job(suspend=True))
    code, going = api.call("DELETE", f"{JOBS}/j?propagationPolicy=Foreground")
    assert code == 200 and going["metadata"]["generation"] == made["metadata"]["generation"] + 1
    _, again = api.call("DELETE", f"{JOBS}/j?propagationPolicy=Foreground")
    assert again["metadata"]["generation"] == going["metadata"]["generation"]


def test_a_node_has_each_address_once(api):
    """When it tells of them, also through its status."""
    addresses = [{"type": "InternalIP", "address": "1.2.3.4"}]
    api.post(NODES, {"metadata": {"name": "n"}, "status": {"addresses": addresses}})
    code, status = api.patch(f"{NODES}/n/status", {"status": {"addresses": addresses * 2}})
    assert code == 422 and "status.addresses[1]: Duplicate value" in status["message"]


def test_a_claim_may_have_a_source_that_nobody_knows(api):
    """Which kube-apiserver drops."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "dataSource": {}}
    api.post(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})


def test_a_suspended_job_keeps_its_own_labels(api):
    """Its pods are found by them."""
    api.post(JOBS, job(suspend=True))
    code, status = api.patch(f"{JOBS}/j", {"spec": {"template": {"metadata": {"labels": {"job-name": "x"}}}}})
    fields = {cause["field"] for cause in status["details"]["causes"]}
    assert (code, fields) == (422, {"spec.template.metadata.labels[job-name]"})
    assert api.patch(f"{JOBS}/j", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}})[0] == 200


def test_a_volume_stays_where_it_is(api):
    """Once that is told."""
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    api.post(VOLUMES, volume())
    assert api.patch(f"{VOLUMES}/v", {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})[0] == 200
    code, status = api.patch(f"{VOLUMES}/v", {"spec": {"nodeAffinity": None}})
    assert code == 422 and "nodeAffinity: Invalid value: null: field is immutable" in status["message"]


def test_a_load_balancer_keeps_its_class(api):
    """As long as it is one."""
    api.post(SERVICES, service(type="LoadBalancer", loadBalancerClass="a.b/c"))
    code, status = api.patch(f"{SERVICES}/s", {"spec": {"loadBalancerClass": "a.b/d"}})
    assert (
        code == 422 and "spec.loadBalancerClass" in status["message"] and "may not change once set" in status["message"]
    )
    assert api.patch(f"{SERVICES}/s", {"spec": {"type": "ClusterIP", "loadBalancerClass": None}})[0] == 200
