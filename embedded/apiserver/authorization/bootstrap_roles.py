"""The roles and bindings every cluster starts with, as far as they speak of what is served here.

Source: kubernetes `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery.objects import Object, name_of
from embedded.apiserver.apimachinery.resource_types import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ResourceType
from embedded.apiserver.authorization.rbac_rules import Rule
from embedded.apiserver.authorization.role_aggregation import RoleAggregation
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.user_info import AUTHENTICATED, MASTERS, UNAUTHENTICATED

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_BATCH, _DISCOVERY, _EVENTS, _LEASES = "batch", "discovery.k8s.io", "events.k8s.io", "coordination.k8s.io"
_NETWORKING, _POLICY, _SCHEDULING, _STORAGE = "networking.k8s.io", "policy", "scheduling.k8s.io", "storage.k8s.io"

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_READ_UPDATE = "get list patch update watch"
_ALL_VERBS = "create delete deletecollection get list patch update watch"
_HEALTH = "/healthz /livez /readyz"


def _rule(verbs: str, groups: str | tuple[str, ...], resources: str, names: str = "") -> Rule:
    """A rule of words between spaces."""
    listed = (groups,) if isinstance(groups, str) else groups
    return Rule(tuple(verbs.split()), listed, tuple(resources.split()), tuple(names.split()))


def _paths(paths: str) -> Rule:
    return Rule(("get",), urls=tuple(paths.split()))


_VIEW = (
    _rule(
        _READ,
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/status serviceaccounts services",
    ),
    _rule(_READ, "", "bindings namespaces namespaces/status pods/log pods/status resourcequotas resourcequotas/status"),
    _rule(_READ, "", "services/status"),
    _rule(_READ, ("", _EVENTS), "events"),
    _rule(_READ, _DISCOVERY, "endpointslices"),
    _rule(
        *(_READ, "apps"),
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/status",
    ),
    _rule(_READ, _BATCH, "cronjobs cronjobs/status jobs jobs/status"),
    _rule(_READ, _POLICY, "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(_READ, _NETWORKING, "ingresses ingresses/status networkpolicies"),
    _rule(_READ, _SCHEDULING, "podgroups podgroups/status workloads"),
)
_EDIT = (
    _rule(_READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _rule("impersonate", "", "serviceaccounts"),
    _rule(_WRITE, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    _rule("create", "", "pods/eviction"),
    _rule(
        *(_WRITE, ""),
        "configmaps persistentvolumeclaims replicationcontrollers secrets serviceaccounts services services/proxy",
    ),
    _rule("create", "", "serviceaccounts/token"),
    _rule(_WRITE, ("", _EVENTS), "events"),
    _rule(
        *(_WRITE, "apps"),
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets",
    ),
    _rule(_WRITE, _BATCH, "cronjobs jobs"),
    _rule(_WRITE, _POLICY, "poddisruptionbudgets"),
    _rule(_WRITE, _NETWORKING, "ingresses networkpolicies"),
    _rule(_ALL_VERBS, _LEASES, "leases"),
    _rule(_WRITE, _SCHEDULING, "podgroups workloads"),
)
_ADMIN = (
    _rule("create", _AUTHORIZATION, "localsubjectaccessreviews"),
    _rule(_ALL_VERBS, CLUSTER_ROLES.group, "rolebindings roles"),
)
_REVIEWS = (
    _rule("create", _AUTHENTICATION, "tokenreviews"),
    _rule("create", _AUTHORIZATION, "subjectaccessreviews"),
)
# What a node may do; which of the objects are its own is for `node_authorizer` to say.
NODE_RULES = (
    *_REVIEWS,
    _rule("create", _AUTHORIZATION, "localsubjectaccessreviews"),
    _rule(_READ, "", "services"),
    # Ours: there is no cluster DNS, so nodes look up themselves who is behind headless Services.
    _rule("list watch", _DISCOVERY, "endpointslices"),
    _rule("create get list watch", "", "nodes"),
    _rule("patch update", "", "nodes nodes/status"),
    _rule("create patch update", ("", _EVENTS), "events"),
    _rule(_READ, "", "pods"),
    _rule("create delete", "", "pods"),
    _rule("patch update", "", "pods/status"),
    _rule("create", "", "pods/eviction"),
    _rule(_READ, "", "configmaps secrets"),
    _rule("get", "", "endpoints persistentvolumeclaims persistentvolumes serviceaccounts"),
    _rule("get patch update", "", "persistentvolumeclaims/status"),
    _rule("create delete get patch update", _LEASES, "leases"),
    _rule("create", "", "serviceaccounts/token"),
)
_RECORDS_EVENTS = _rule("create patch update", ("", _EVENTS), "events")
_SCHEDULER = (
    _RECORDS_EVENTS,
    _rule("create", _LEASES, "leases"),
    _rule("get list update watch", _LEASES, "leases", "kube-scheduler"),
    _rule(_READ, "", "namespaces nodes persistentvolumeclaims persistentvolumes services"),
    _rule("delete get list watch", "", "pods"),
    _rule("create", "", "bindings pods/binding"),
    _rule("patch update", "", "pods/status"),
    _rule(_READ, "apps", "replicasets"),
    _rule(_READ, _POLICY, "poddisruptionbudgets"),
    *_REVIEWS,
    _rule(_READ, _SCHEDULING, "podgroups"),
    _rule("patch update", _SCHEDULING, "podgroups/status"),
)
_ROLES: dict[str, tuple[Rule, ...]] = {
    "cluster-admin": (_rule("*", "*", "*"), Rule(("*",), urls=("*",))),
    "system:aggregate-to-admin": _ADMIN,
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": _REVIEWS,
    "system:basic-user": (
        _rule("create", _AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _rule("create", _AUTHENTICATION, "selfsubjectreviews"),
    ),
    "system:discovery": (_paths(f"/api /api/* /apis /apis/* /openapi /openapi/* /version /version/ {_HEALTH}"),),
    "system:kube-scheduler": _SCHEDULER,
    "system:monitoring": (_paths(f"/metrics /metrics/slis {_HEALTH} /healthz/* /livez/* /readyz/*"),),
    "system:node": NODE_RULES,
    "system:node-proxier": (
        _rule("list watch", "", "endpoints services"),
        _rule(_READ, "", "nodes"),
        _RECORDS_EVENTS,
        _rule("list watch", _DISCOVERY, "endpointslices"),
    ),
    "system:public-info-viewer": (_paths(f"/version /version/ {_HEALTH}"),),
    "system:service-account-issuer-discovery": (
        _paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ),
    "system:volume-scheduler": (
        _rule(_READ_UPDATE, "", "persistentvolumeclaims persistentvolumes"),
        _rule(_READ, _STORAGE, "storageclasses"),
    ),
}
# What a role is part of, and which parts it gathers.
_PART_OF = {
    "edit": "admin",
    "view": "edit",
    **{f"system:aggregate-to-{name}": name for name in ("admin", "edit", "view")},
}
_GATHERS = ("admin", "edit", "view")
# The binding of the node role has no subject: nodes are known by their names.
_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", MASTERS),),
    "system:basic-user": (("Group", AUTHENTICATED),),
    "system:discovery": (("Group", AUTHENTICATED),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:node": (),
    "system:node-proxier": (("User", "system:kube-proxy"),),
    "system:public-info-viewer": (("Group", AUTHENTICATED), ("Group", UNAUTHENTICATED)),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
}


def create_default_roles(resources: Resources) -> None:
    """Those that are not there from an earlier run, and what those that are there lack.

    A role or binding whose annotation `rbac.authorization.kubernetes.io/autoupdate` is `false` stays as it is.
    """
    for role in default_roles():
        _complete(resources, CLUSTER_ROLES, role, "rules")
    for binding in default_bindings():
        _complete(resources, CLUSTER_ROLE_BINDINGS, binding, "subjects")
    RoleAggregation(resources).aggregate()


def default_roles() -> Iterator[Object]:
    for name, rules in _ROLES.items():
        yield {"metadata": _metadata(name), "rules": [rule.shown for rule in rules]}
    for name in _GATHERS:
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        yield {"metadata": _metadata(name), "aggregationRule": {"clusterRoleSelectors": [selector]}, "rules": []}


def default_bindings() -> Iterator[Object]:
    group = CLUSTER_ROLES.group
    for name, subjects in _BINDINGS.items():
        reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
        listed = [{"apiGroup": group, "kind": kind, "name": who} for kind, who in subjects]
        yield {"metadata": _metadata(name), "roleRef": reference, "subjects": listed}


def _metadata(name: str) -> Object:
    part = {f"{_AGGREGATE}{_PART_OF[name]}": "true"} if name in _PART_OF else {}
    return {"name": name, "labels": _LABELS | part, "annotations": {_AUTO_UPDATE: "true"}}


def _complete(resources: Resources, rtype: ResourceType, wanted: Object, key: str) -> None:
    held = resources.find(rtype, "", name_of(wanted))
    if held is None:
        resources.create(rtype, "", wanted)
    elif (held["metadata"].get("annotations") or {}).get(_AUTO_UPDATE) != "false":
        lacking = [item for item in wanted.get(key) or () if item not in (held.get(key) or ())]
        if lacking:
            whole = [*(held.get(key) or ()), *lacking]
            resources.update(rtype, "", name_of(wanted), lambda live: {**live, key: whole})
