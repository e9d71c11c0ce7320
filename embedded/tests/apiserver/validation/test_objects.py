"""What Kubernetes says of wrong objects: field, reason and words of every cause of a 422."""

import pytest

DEFAULT = "/api/v1/namespaces/default"
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)


def pod(meta=None, **fields):
    return "pods", {
        "metadata": {"name": "p", **(meta or {})},
        "spec": {"containers": [{"name": "c", "image": "i"}], **fields},
    }


def c(**fields):
    return pod(containers=[{"name": "c", "image": "i", **fields}])


def amounts(**resources):
    return c(resources=resources)


def secret(**fields):
    return "secrets", {"metadata": {"name": "s"}, **fields}


def service(**fields):
    return "services", {"metadata": {"name": "s"}, "spec": fields}


def quota(**fields):
    return "resourcequotas", {"metadata": {"name": "q"}, "spec": fields}


def affinity(**kinds):
    return pod(affinity=kinds)


C, A = "spec.containers[0]", "spec.affinity"
NEED, LIKE = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
INVALID, REQUIRED, SUPPORTED, TWICE = (
    "FieldValueInvalid",
    "FieldValueRequired",
    "FieldValueNotSupported",
    "FieldValueDuplicate",
)
FORBIDDEN, ABSENT, LONG = "FieldValueForbidden", "FieldValueNotFound", "FieldValueTooLong"
HTTP = {"httpGet": {"port": 80}}
CASES = {
    "name": (pod({"name": "A_b"}), "metadata.name", INVALID, 'Invalid value: "A_b": a lowercase RFC 1123 subdomain must'),
    "name ends in a newline": (pod({"name": "a\n"}), "metadata.name", INVALID, "a lowercase RFC 1123 subdomain must"),
    "long name": (pod({"name": "a" * 254}), "metadata.name", INVALID, "must be no more than 253 characters"),
    "generated name": (pod({"name": None, "generateName": "A-"}), "metadata.generateName", INVALID, "RFC 1123 subdomain"),
    "label key": (pod({"labels": {"a b": "c"}}), "metadata.labels", INVALID, f'Invalid value: "a b": name part {KEY_RULE}'),
    "empty label key": (pod({"labels": {"": "c"}}), "metadata.labels", INVALID, "name part must be non-empty"),
    "empty prefix": (pod({"labels": {"/a": "c"}}), "metadata.labels", INVALID, "prefix part must be non-empty"),
    "two slashes": (pod({"labels": {"a/b/c": "d"}}), "metadata.labels", INVALID, "with an optional DNS subdomain prefix and '/'"),
    "label value": (pod({"labels": {"a": "b c"}}), "metadata.labels", INVALID, 'Invalid value: "b c": a valid label must be an empty'),
    "annotation key": (pod({"annotations": {"A B": "c"}}), "metadata.annotations", INVALID, 'Invalid value: "A B": name part'),
    "annotations": (pod({"annotations": {"a": "x" * 262144}}), "metadata.annotations", LONG, "may not be more than 262144 bytes"),
    "owner": (pod({"ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j"}]}), "metadata.ownerReferences.uid", INVALID, "must not be empty"),
    "two controllers": (
        pod({"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": n, "uid": n, "controller": True} for n in "ab"]}),
        "metadata.ownerReferences",
        INVALID,
        'Found "true" in references for a and b',
    ),
    "no container": (pod(containers=[]), "spec.containers", REQUIRED, "Required value"),
    "container name": (pod(containers=[{"name": "C", "image": "i"}]), f"{C}.name", INVALID, "a lowercase RFC 1123 label must"),
    "no container name": (pod(containers=[{"image": "i"}]), f"{C}.name", REQUIRED, "Required value"),
    "no image": (pod(containers=[{"name": "c"}]), f"{C}.image", REQUIRED, "Required value"),
    "image with spaces": (c(image=" i"), f"{C}.image", INVALID, "must not have leading or trailing whitespace"),
    "container twice": (pod(containers=[{"name": "c", "image": "i"}] * 2), "spec.containers[1].name", TWICE, 'Duplicate value: "c"'),
    "init container twice": (pod(initContainers=[{"name": "c", "image": "i"}]), "spec.initContainers[0].name", TWICE, 'Duplicate value: "c"'),
    "pull policy": (c(imagePullPolicy="Often"), f"{C}.imagePullPolicy", SUPPORTED, '"Often": supported values: "Always", "IfNotPresent", "Never"'),
    "no port": (c(ports=[{}]), f"{C}.ports[0].containerPort", REQUIRED, "Required value"),
    "port": (c(ports=[{"containerPort": 70000}]), f"{C}.ports[0].containerPort", INVALID, "70000: must be between 1 and 65535, inclusive"),
    "protocol": (c(ports=[{"containerPort": 1, "protocol": "tcp"}]), f"{C}.ports[0].protocol", SUPPORTED, '"tcp": supported values: "SCTP", "TCP", "UDP"'),
    "port name": (c(ports=[{"containerPort": 1, "name": "a_b"}]), f"{C}.ports[0].name", INVALID, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
    "port name twice": (c(ports=[{"containerPort": n, "name": "a"} for n in (1, 2)]), f"{C}.ports[1].name", TWICE, 'Duplicate value: "a"'),
    "host port twice": (c(ports=[{"containerPort": n, "hostPort": 9} for n in (1, 2)]), f"{C}.ports[1].hostPort", TWICE, '"TCP//9"'),
    "host network": (pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}]), f"{C}.ports[0].hostPort", INVALID, "must match `containerPort`"),
    "variable name": (c(env=[{"name": "a=b"}]), f"{C}.env[0].name", INVALID, "printable ASCII characters other than '='"),
    "no variable name": (c(env=[{"value": "b"}]), f"{C}.env[0].name", REQUIRED, "Required value"),
    "variable of nothing": (c(env=[{"name": "A", "valueFrom": {}}]), f"{C}.env[0].valueFrom", INVALID, "must specify one of: `fieldRef`"),
    "variable of a field": (c(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]), f"{C}.env[0].valueFrom.fieldRef.fieldPath", SUPPORTED, '"spec.x": supported values: "metadata.name"'),
    "variable and value": (c(env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]), f"{C}.env[0].valueFrom", INVALID, "may not be specified when `value` is not empty"),
    "secret without key": (c(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]), f"{C}.env[0].valueFrom.secretKeyRef.key", REQUIRED, "Required value"),
    "environment of nothing": (c(envFrom=[{}]), f"{C}.envFrom[0]", INVALID, "must specify one of: `configMapRef` or `secretRef`"),
    "unknown volume": (c(volumeMounts=[{"name": "v", "mountPath": "/v"}]), f"{C}.volumeMounts[0].name", ABSENT, 'Not found: "v"'),
    "mount path twice": (pod(volumes=[{"name": "v"}], containers=[{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}] * 2}]), f"{C}.volumeMounts[1].mountPath", INVALID, "must be unique"),
    "two sources": (pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]), "spec.volumes[0].hostPath", FORBIDDEN, "may not specify more than 1 volume type"),
    "negative": (amounts(requests={"cpu": "-1"}), f"{C}.resources.requests[cpu]", INVALID, '"-1": must be greater than or equal to 0'),
    "request above limit": (amounts(requests={"cpu": "2"}, limits={"cpu": "1"}), f"{C}.resources.requests", INVALID, '"2": must be less than or equal to cpu limit of 1'),
    "unknown resource": (amounts(requests={"gpu": "1"}), f"{C}.resources.requests[gpu]", INVALID, "must be a standard resource for containers"),
    "extended resource without limit": (amounts(requests={"a.b/c": "1"}), f"{C}.resources.limits", REQUIRED, "Limit must be set for non overcommitable resources"),
    "probe of nothing": (c(livenessProbe={}), f"{C}.livenessProbe", REQUIRED, "must specify a handler type"),
    "two handlers": (c(livenessProbe={**HTTP, "exec": {"command": ["a"]}}), f"{C}.livenessProbe.httpGet", FORBIDDEN, "may not specify more than 1 handler type"),
    "empty command": (c(readinessProbe={"exec": {}}), f"{C}.readinessProbe.exec.command", REQUIRED, "Required value"),
    "probe port": (c(readinessProbe={"tcpSocket": {"port": 0}}), f"{C}.readinessProbe.tcpSocket.port", INVALID, "must be between 1 and 65535"),
    "negative period": (c(readinessProbe={**HTTP, "periodSeconds": -1}), f"{C}.readinessProbe.periodSeconds", INVALID, "-1: must be greater than or equal to 0"),
    "success threshold": (c(livenessProbe={**HTTP, "successThreshold": 2}), f"{C}.livenessProbe.successThreshold", INVALID, "2: must be 1"),
    "probe of an init container": (pod(initContainers=[{"name": "i", "image": "i", "livenessProbe": HTTP}]), "spec.initContainers[0].livenessProbe", FORBIDDEN, "may not be set for init containers without restartPolicy=Always"),
    "restart policy": (pod(restartPolicy="Once"), "spec.restartPolicy", SUPPORTED, '"Once": supported values: "Always", "OnFailure", "Never"'),
    "dns policy": (pod(dnsPolicy="No"), "spec.dnsPolicy", SUPPORTED, '"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"'),
    "host name": (pod(hostname="a.b"), "spec.hostname", INVALID, "a lowercase RFC 1123 label must"),
    "deadline": (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds", INVALID, "must be between 1 and 2147483647, inclusive"),
    "gate twice": (pod(schedulingGates=[{"name": "a"}] * 2), "spec.schedulingGates[1]", TWICE, 'Duplicate value: "a"'),
    "toleration of every key": (pod(tolerations=[{"effect": "NoExecute"}]), "spec.tolerations[0].operator", INVALID, 'operator must be Exists when `key` is empty'),
    "toleration seconds": (pod(tolerations=[{"key": "a", "tolerationSeconds": 1}]), "spec.tolerations[0].effect", INVALID, "effect must be 'NoExecute' when `tolerationSeconds` is set"),
    "toleration effect": (pod(tolerations=[{"key": "a", "effect": "x"}]), "spec.tolerations[0].effect", SUPPORTED, '"NoSchedule", "PreferNoSchedule", "NoExecute"'),
    "selector operator": (affinity(nodeAffinity={NEED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "is"}]}]}}), f"{A}.nodeAffinity.{NEED}.nodeSelectorTerms[0].matchExpressions[0].operator", INVALID, '"is": not a valid selector operator'),
    "no term": (affinity(nodeAffinity={NEED: {}}), f"{A}.nodeAffinity.{NEED}.nodeSelectorTerms", REQUIRED, "must have at least one node selector term"),
    "two values to compare": (affinity(nodeAffinity={NEED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}]}}), f"{A}.nodeAffinity.{NEED}.nodeSelectorTerms[0].matchExpressions[0].values", REQUIRED, "must be specified single value"),
    "weight": (affinity(podAffinity={LIKE: [{"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}), f"{A}.podAffinity.{LIKE}[0].weight", INVALID, "101: must be in the range 1-100"),
    "no topology key": (affinity(podAntiAffinity={NEED: [{"labelSelector": {}}]}), f"{A}.podAntiAffinity.{NEED}[0].topologyKey", REQUIRED, "can not be empty"),
    "skew": (pod(topologySpreadConstraints=[{"topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]), "spec.topologySpreadConstraints[0].maxSkew", INVALID, "0: must be greater than zero"),
    "budget's selector": (("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}), "spec.selector.matchExpressions[0].values", REQUIRED, "must be specified when `operator` is 'In' or 'NotIn'"),
    "config key": (("configmaps", {"metadata": {"name": "m"}, "data": {"a b": "c"}}), "data[a b]", INVALID, "a valid config key must consist of"),
    "config key of dots": (("configmaps", {"metadata": {"name": "m"}, "data": {"..": "c"}}), "data[..]", INVALID, "must not be '..'"),
    "key in both": (("configmaps", {"metadata": {"name": "m"}, "data": {"a": "c"}, "binaryData": {"a": "YQ=="}}), "data[a]", INVALID, "duplicate of key present in binaryData"),
    "large map": (("configmaps", {"metadata": {"name": "m"}, "data": {"a": "x" * (1 << 20 | 1)}}), "[]", LONG, "may not be more than 1048576 bytes"),
    "tls secret": (secret(type="kubernetes.io/tls", data={"tls.crt": ""}), "data[tls.key]", REQUIRED, "Required value"),
    "token secret": (secret(type="kubernetes.io/service-account-token"), "metadata.annotations[kubernetes.io/service-account.name]", REQUIRED, "Required value"),
    "service name": (("services", {"metadata": {"name": "1a"}, "spec": {"ports": [{"port": 1}]}}), "metadata.name", INVALID, "a DNS-1035 label must consist of"),
    "no service port": (service(selector={"a": "b"}), "spec.ports", REQUIRED, "Required value"),
    "service port": (service(ports=[{"port": 0}]), "spec.ports[0].port", INVALID, "0: must be between 1 and 65535, inclusive"),
    "nameless ports": (service(ports=[{"port": 1}, {"port": 2}]), "spec.ports[0].name", REQUIRED, "Required value"),
    "service type": (service(type="Own", ports=[{"port": 1}]), "spec.type", SUPPORTED, '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
    "quota of nonsense": (quota(hard={"frobs": "1"}), "spec.hard[frobs]", INVALID, "must be a standard resource for quota"),
    "negative quota": (quota(hard={"pods": "-1"}), "spec.hard[pods]", INVALID, '"-1": must be greater than or equal to 0'),
    "finalizer": (pod({"finalizers": ["a b"]}), "metadata.finalizers", INVALID, 'Invalid value: "a b": name part must consist'),
    "finalizer of one word": (
        pod({"finalizers": ["orphan", "hold"]}), "metadata.finalizers[1]", INVALID, 'Invalid value: "hold": name is neither a standard finalizer name nor is it fully qualified'
    ),
    "half a pod": (quota(hard={"pods": "500m"}), "spec.hard[pods]", INVALID, "must be an integer"),
    "quota scope": (quota(scopes=["x"]), "spec.scopes", INVALID, "unsupported scope"),
    "pod template": (("podtemplates", {"metadata": {"name": "t"}, "template": {}}), "template.spec.containers", REQUIRED, "Required value"),
}  # fmt: skip


@pytest.mark.parametrize(("what", "field", "reason", "words"), CASES.values(), ids=CASES)
def test_wrong_objects_are_refused_in_kubernetes_words(api, what, field, reason, words):
    """422 with a cause for the field; the message repeats the causes."""
    plural, obj = what
    base = DEFAULT.replace("/api/", "/apis/policy/") if plural == "poddisruptionbudgets" else DEFAULT
    code, status = api.call("POST", f"{base}/{plural}", obj)
    assert (code, status["reason"]) == (422, "Invalid"), status
    causes = [cause for cause in status["details"]["causes"] if cause["field"] == field]
    assert reason in {cause["reason"] for cause in causes}, status
    assert any(words in cause["message"] for cause in causes), status
    assert all(f"{cause['field']}: {cause['message']}" in status["message"] for cause in causes)


def test_several_causes_are_listed_in_order(api):
    """The message is a list, as kubectl's is."""
    code, status = api.call(
        "POST", f"{DEFAULT}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "C"}]}}
    )
    assert code == 422 and status["message"].startswith(
        'Pod "p" is invalid: [spec.containers[0].name: Invalid value: "C": '
    )
    assert [cause["field"] for cause in status["details"]["causes"]] == [f"{C}.name", f"{C}.image"]
    assert (status["details"]["name"], status["details"]["kind"]) == ("p", "Pod")


CHANGES = {
    "another container": (pod(), {"spec": {"containers": []}}, "spec.containers"),
    "another node": (pod(nodeName="a"), {"spec": {"nodeName": "b"}}, "spec"),
    "a toleration less": (
        pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        {"spec": {"tolerations": []}},
        "spec.tolerations",
    ),
    "a new gate": (pod(), {"spec": {"schedulingGates": [{"name": "g"}]}}, "spec.schedulingGates[0].name"),
    "a later deadline": (
        pod(activeDeadlineSeconds=5),
        {"spec": {"activeDeadlineSeconds": 6}},
        "spec.activeDeadlineSeconds",
    ),
    "no deadline": (
        pod(activeDeadlineSeconds=5),
        {"spec": {"activeDeadlineSeconds": None}},
        "spec.activeDeadlineSeconds",
    ),
    "type of a secret": (secret(), {"type": "a.b/c"}, "type"),
    "settled secret": (secret(immutable=True), {"data": {"a": "YQ=="}}, "data"),
    "unsettled secret": (secret(immutable=True), {"immutable": False}, "immutable"),
    "scopes of a quota": (quota(hard={"pods": "1"}), {"spec": {"scopes": ["Terminating"]}}, "spec.scopes"),
}


@pytest.mark.parametrize(("what", "patch", "field"), CHANGES.values(), ids=CHANGES)
def test_what_may_not_change(api, what, patch, field):
    """422, naming the field."""
    plural, obj = what
    created = api.post(f"{DEFAULT}/{plural}", obj)
    code, status = api.patch(f"{DEFAULT}/{plural}/{created['metadata']['name']}", patch)
    assert code == 422, status
    assert field in [cause["field"] for cause in status["details"]["causes"]]


def test_what_may_change(api):
    """Image, a shorter deadline, a toleration more or with other seconds."""
    forever = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    plural, obj = pod(activeDeadlineSeconds=5, tolerations=[forever])
    kept = api.post(f"{DEFAULT}/{plural}", obj)["spec"]["tolerations"]
    changed = [{**kept[0], "tolerationSeconds": 6}, *kept[1:], {"key": "b", "operator": "Exists"}]
    spec = {"activeDeadlineSeconds": 3, "tolerations": changed, "containers": [{"name": "c", "image": "j"}]}
    code, found = api.patch(f"{DEFAULT}/pods/p", {"spec": spec}, "strategic")
    assert code == 200, found
    assert found["spec"]["tolerations"] == changed and found["spec"]["containers"][0]["image"] == "j"


def test_string_data_becomes_data(api):
    """A secret written in plain text is read in base64."""
    found = api.post(f"{DEFAULT}/secrets", secret(stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="})[1])
    assert found["data"] == {"a": "Yg==", "c": "eA=="} and "stringData" not in found


def test_ports_of_the_host_network_are_the_hosts(api):
    """What is not said is the same port."""
    plural, obj = pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}])
    assert api.post(f"{DEFAULT}/{plural}", obj)["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_a_service_gets_its_defaults(api):
    """Stored as a real server would show it, but for the addresses."""
    spec = api.post(f"{DEFAULT}/services", service(ports=[{"port": 80}])[1])["spec"]
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
