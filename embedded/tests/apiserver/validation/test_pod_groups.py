"""scheduling.k8s.io's PodGroup and Workload, and what admission makes of pods for the scheduler."""

import pytest

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.sigs.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved"},
    },
    "spec": {
        "group": "scheduling.sigs.k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
        "versions": [
            {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
PODS = "/api/v1/namespaces/default/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GANG = {"gang": {"minCount": 2}}


def group(name="g", **spec):
    return {"metadata": {"name": name}, "spec": {"schedulingPolicy": GANG} | spec}


def pod(name="p", **spec):
    labels = {"app": "x", "version": "1"}
    base = {"containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": base | spec}


def test_whole_life(api):
    """Priority is settled, the status is written apart, the minimum may change."""
    api.post(CLASSES, {"metadata": {"name": "high"}, "value": 9000, "preemptionPolicy": "Never"})
    made = api.post(f"{GROUPS}?fieldValidation=Strict", group(priorityClassName="high"))
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (9000, "Never")
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    api.patch(f"{GROUPS}/g/status", {"status": {"conditions": [condition]}})
    api.patch(f"{GROUPS}/g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
    found = api.get(f"{GROUPS}/g")
    assert (found["spec"]["schedulingPolicy"]["gang"]["minCount"], found["status"]["conditions"]) == (3, [condition])


def test_a_class_that_is_not_there(api):
    """Refused, as a pod's is."""
    code, answer = api.call("POST", GROUPS, group(priorityClassName="none"))
    assert (code, "no PriorityClass with name none was found" in answer["message"]) == (403, True)


WRONG = {
    "no policy": ({"schedulingPolicy": {}}, "spec.schedulingPolicy"),
    "two policies": ({"schedulingPolicy": GANG | {"basic": {}}}, "spec.schedulingPolicy"),
    "no minimum": ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount"),
    "no mode": ({"disruptionMode": {}}, "spec.disruptionMode"),
    "two topologies": (
        {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
        "spec.schedulingConstraints.topology",
    ),
    "no label key": (
        {"schedulingConstraints": {"topology": [{"key": "a b"}]}},
        "spec.schedulingConstraints.topology[0].key",
    ),
}


@pytest.mark.parametrize(("spec", "field"), WRONG.values(), ids=WRONG.keys())
def test_what_is_refused(api, spec, field):
    """422 that names the field."""
    code, answer = api.call("POST", GROUPS, group(**spec))
    assert (code, [cause["field"] for cause in answer["details"]["causes"]]) == (422, [field])


def test_the_rest_of_the_spec_stays(api):
    """The policy's kind, for one."""
    api.post(GROUPS, group())
    code, _ = api.patch(f"{GROUPS}/g", {"spec": {"disruptionMode": {"all": {}}}})
    assert code == 422


def test_workload(api):
    """Kept as written."""
    templates = [{"name": "workers", "schedulingPolicy": GANG}]
    body = {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": templates}}
    assert api.post(f"{WORKLOADS}?fieldValidation=Strict", body)["spec"]["podGroupTemplates"] == templates


def test_a_custom_types_word_comes_first(api):
    """Clients that say `podgroups` alone mean scheduler-plugins' definition where there is one."""
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    groups = [each["name"] for each in api.get("/apis")["groups"]]
    assert groups.index("scheduling.sigs.k8s.io") < groups.index("scheduling.k8s.io")
    versions = next(each for each in api.get("/apis")["groups"] if each["name"] == "scheduling.k8s.io")
    assert versions["preferredVersion"]["version"] == "v1"


def test_a_pods_label_keys_are_merged_into_its_selectors(api):
    """Once, however often admission looks; a key it does not have asks nothing."""
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["version", "none"],
    }
    unlike = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["app"]}
    spread = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["version"],
    }
    affinity = {
        "podAffinity": {REQUIRED: [term]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": unlike}]
        },
    }
    spec = api.post(PODS, pod(affinity=affinity, topologySpreadConstraints=[spread]))["spec"]
    merged = [{"key": "version", "operator": "In", "values": ["1"]}]
    assert spec["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"]["matchExpressions"] == merged
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == merged
    (preferred,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["labelSelector"]["matchExpressions"] == [
        {"key": "app", "operator": "NotIn", "values": ["x"]}
    ]


def test_a_pods_group(api):
    """spec.schedulingGroup is kept."""
    made = api.post(f"{PODS}?fieldValidation=Strict", pod(schedulingGroup={"podGroupName": "g"}))
    assert made["spec"]["schedulingGroup"] == {"podGroupName": "g"}
