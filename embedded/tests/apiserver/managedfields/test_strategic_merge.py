"""Strategic merge patch."""

import pytest

from embedded.apiserver.apimachinery.resource_types import (
    DISRUPTION_BUDGETS,
    JOBS,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.managedfields.strategic_merge import strategic_merge


def spec(*containers, **more):
    return {"spec": {"containers": list(containers), **more}}


def c(name, **more):
    return {"name": name, **more}


POD_CASES = {
    "containers merge by name": (
        spec(c("a", image="1"), c("b", image="1")),
        spec(c("b", image="2")),
        spec(c("a", image="1"), c("b", image="2")),
    ),
    "order is given": (
        spec(c("a"), c("b")),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}], "containers": [c("b", image="2")]}},
        spec(c("a"), c("b", image="2")),
    ),
    "order alone": (
        spec(c("a"), c("b")),
        {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
        spec(c("b"), c("a")),
    ),
    "a new item goes before what only the server has": (
        spec(c("server")),
        {"spec": {"$setElementOrder/containers": [{"name": "new"}], "containers": [c("new")]}},
        spec(c("new"), c("server")),
    ),
    "what only the server has keeps its place": (
        spec(c("a"), c("server"), c("b")),
        {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}], "containers": [c("b", image="2")]}},
        spec(c("a"), c("server"), c("b", image="2")),
    ),
    "delete an item": (
        spec(c("a"), c("b")),
        spec({"name": "a", "$patch": "delete"}),
        spec(c("b")),
    ),
    "replace a list": (
        spec(c("a"), c("b")),
        {"spec": {"containers": [c("x"), {"$patch": "replace"}]}},
        spec(c("x")),
    ),
    "replace a map": (
        {"spec": {"nodeSelector": {"a": "1"}}},
        {"spec": {"nodeSelector": {"b": "2", "$patch": "replace"}}},
        {"spec": {"nodeSelector": {"b": "2"}}},
    ),
    "delete a map": (
        {"spec": {"nodeSelector": {"a": "1"}, "x": 1}},
        {"spec": {"nodeSelector": {"$patch": "delete"}}},
        {"spec": {"x": 1}},
    ),
    "a directive on an absent field vanishes": (
        {"spec": {"x": 1}},
        {"spec": {"nodeSelector": {"$patch": "delete"}}},
        {"spec": {"x": 1}},
    ),
    "null removes": ({"spec": {"a": 1, "b": 2}}, {"spec": {"a": None}}, {"spec": {"b": 2}}),
    "null inside a new map vanishes": ({"spec": {}}, {"spec": {"a": {"b": None}}}, {"spec": {"a": {}}}),
    "retain keys": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}, "$retainKeys": ["name", "hostPath"]}]}},
        {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
    ),
    "env merges by name": (
        spec(c("a", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "1"}])),
        spec(c("a", env=[{"name": "X", "value": "2"}])),
        spec(c("a", env=[{"name": "X", "value": "2"}, {"name": "Y", "value": "1"}])),
    ),
    "tolerations are atomic": (
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "container statuses are atomic": (
        {"status": {"containerStatuses": [c("a", ready=True), c("b")]}},
        {"status": {"containerStatuses": [c("a")]}},
        {"status": {"containerStatuses": [c("a")]}},
    ),
    "conditions merge by type": (
        {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}, {"type": "Other"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "x"}, {"type": "Other"}]}},
    ),
    "finalizers are a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "delete from a set": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
}


@pytest.mark.parametrize(("target", "patch", "expected"), POD_CASES.values(), ids=POD_CASES)
def test_pods_merge_by_their_declared_keys(target, patch, expected):
    """Lists with a merge key merge item by item, atomic ones are replaced, directives do as they say."""
    before = repr(target)
    assert strategic_merge(PODS, target, patch) == expected
    assert repr(target) == before


def test_taints_are_replaced_as_a_whole():
    """Nodes declare no merge key for taints: kubectl taint sends the whole list."""
    target = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}
    assert strategic_merge(NODES, target, patch) == patch


def test_the_selector_of_a_budget_is_replaced_as_a_whole():
    """A label that is no longer in the patch is no longer in the selector."""
    target = {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "1", "b": "2"}}}}
    merged = strategic_merge(DISRUPTION_BUDGETS, target, {"spec": {"selector": {"matchLabels": {"a": "1"}}}})
    assert merged == {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "1"}}}}


OTHER_CASES = {
    "ports of a service by port": (
        SERVICES,
        {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 81}]}},
        {"spec": {"ports": [{"port": 80, "name": "b"}]}},
        {"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 81}]}},
    ),
    "secrets of an account by name": (
        SERVICE_ACCOUNTS,
        {"secrets": [{"name": "a"}]},
        {"secrets": [{"name": "b"}]},
        {"secrets": [{"name": "b"}, {"name": "a"}]},
    ),
    "pod CIDRs are a set": (
        NODES,
        {"spec": {"podCIDRs": ["10.0.0.0/24"]}},
        {"spec": {"podCIDRs": ["fd00::/64"]}},
        {"spec": {"podCIDRs": ["fd00::/64", "10.0.0.0/24"]}},
    ),
    "conditions of a job by type": (
        JOBS,
        {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}, {"type": "Suspended", "status": "True"}]}},
    ),
    "amounts of a node are a map": (
        NODES,
        {"status": {"capacity": {"cpu": "4", "memory": "8Gi"}}},
        {"status": {"capacity": {"cpu": "5", "memory": None}}},
        {"status": {"capacity": {"cpu": "5"}}},
    ),
}


@pytest.mark.parametrize(("rtype", "target", "patch", "expected"), OTHER_CASES.values(), ids=OTHER_CASES)
def test_every_type_merges_by_its_own_declarations(rtype, target, patch, expected):
    """The keys are those of each type's own schema."""
    assert strategic_merge(rtype, target, patch) == expected


def test_a_job_template_merges_like_a_pod():
    """Merge keys apply inside the pod template too."""
    target = {"spec": {"template": spec(c("a", image="1"), c("b"))}}
    merged = strategic_merge(JOBS, target, {"spec": {"template": spec(c("a", image="2"))}})
    assert merged == {"spec": {"template": spec(c("a", image="2"), c("b"))}}


@pytest.mark.parametrize(
    "patch",
    [
        [],
        {"spec": {"containers": [{"image": "x"}]}},
        {"spec": {"$patch": "frob"}},
        {"spec": {"containers": ["x"]}},
        {"spec": {"$setElementOrder/containers": "a"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        {"spec": {"$deleteFromPrimitiveList/activeDeadlineSeconds": [5]}},
        {"spec": {"$setElementOrder/activeDeadlineSeconds": [5]}},
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}, "$retainKeys": ["name"]}]}},
    ],
)
def test_malformed_patches_are_refused(patch):
    """A patch without its merge key or with an unknown directive is 400."""
    with pytest.raises(StatusError) as refused:
        strategic_merge(PODS, spec(c("a"), activeDeadlineSeconds=5), patch)
    assert refused.value.code == 400
