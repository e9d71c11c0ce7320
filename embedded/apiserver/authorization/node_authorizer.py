"""What nodes may do: read and write what belongs to them and to the pods bound to them, nothing of other nodes.

A node is a user named `system:node:NAME` of the group `system:nodes`. Whether it may read an object is decided here;
`check_own` holds what it writes against what is its own. Of pods it makes the mirrors of its static pods alone.

Sources: kubernetes
`plugin/pkg/auth/authorizer/node/node_authorizer.go`, `plugin/pkg/admission/noderestriction/admission.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, decode_object, dig, quoted
from embedded.apiserver.apimachinery.resource_types import LEASES, NODES, PODS, ResourceType
from embedded.apiserver.apimachinery.selectors import Filter, Requirement
from embedded.apiserver.apimachinery.status import forbidden
from embedded.apiserver.authorization.bootstrap_roles import NODE_RULES
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.attributes import Attributes, Authorizer, Decision
from embedded.apiserver.request.messages import Request
from embedded.apiserver.serialization.request_body import body_object
from embedded.apiserver.storage.watch_cache import PINNED_FIELD
from embedded.apiserver.validation.pod_hosts import MIRROR

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_RULE = "can only access node lease with the same name as the requesting node"
# What of a pod's spec names an object of which type: key → where below it the name stands.
_REFERENCES: dict[str, dict[str, str]] = {
    "secrets": {"secret": "name", "secretKeyRef": "name", "secretRef": "name", "imagePullSecrets": "name"},
    "configmaps": {"configMap": "name", "configMapKeyRef": "name", "configMapRef": "name"},
    "persistentvolumeclaims": {"persistentVolumeClaim": "claimName"},
    "serviceaccounts": {},
}


class Nodes:
    """Decides for nodes, and leaves everything else to another; implements `attributes.Authorizer`."""

    def __init__(self, resources: Resources, others: Authorizer) -> None:
        self._resources = resources
        self._others = others

    def decide(self, attributes: Attributes) -> Decision:
        node = attributes.user.node
        why = self._objection(node, attributes) if node else ""
        if node and why is None:
            return Decision(True)
        decision = self._others.decide(attributes)
        reasons = (reason for reason in (why, decision.reason) if reason)
        return decision if decision.allowed else Decision(False, "\n".join(reasons))

    def _objection(self, node: str, wanted: Attributes) -> str | None:
        """Why a node may not, in upstream's words, which are often none; None where it may."""
        if not any(rule.allows(wanted) for rule in NODE_RULES):
            return ""
        reads = wanted.verb in ("get", "list", "watch")
        match (wanted.group, wanted.resource):
            case ("", "nodes") if reads and wanted.name != node:
                what = f"'{wanted.name}'" if wanted.name else "all nodes"
                return f"node '{node}' cannot read {what}, only its own Node object"
            case ("", "pods") if reads:
                return self._pods_objection(node, wanted)
            case ("", "secrets" | "configmaps" | "persistentvolumeclaims" | "serviceaccounts"):
                return self._reference_objection(node, wanted)
            case ("coordination.k8s.io", "leases"):
                return _lease_objection(node, wanted)
        return None

    def _pods_objection(self, node: str, wanted: Attributes) -> str | None:
        if wanted.verb != "get" and _pins(wanted.field_selector, node):
            return None
        if not wanted.name:
            return "can only list/watch pods with spec.nodeName field selector"
        pod = self._resources.store.get(PODS.id, wanted.namespace, wanted.name)
        return None if pod is not None and pod.fields.get(PINNED_FIELD) == node else _unrelated(node)

    def _reference_objection(self, node: str, wanted: Attributes) -> str | None:
        if not (wanted.namespace and wanted.name):
            return "No Object name found" if wanted.namespace else "can only read namespaced object of this type"
        return None if self._refers(node, wanted) else _unrelated(node)

    def _refers(self, node: str, wanted: Attributes) -> bool:
        """Whether a pod bound to the node names the object."""
        bound = Requirement(PINNED_FIELD, "in", frozenset((node,)))
        for record in self._resources.store.select(PODS.id, Filter(wanted.namespace, fields=(bound,))):
            if wanted.name.encode() in record.body:  # most pods need not be decoded
                spec = decode_object(record.body)["spec"]
                if wanted.name in _names(spec, wanted.resource):
                    return True
        return False


def _pins(selector: str, node: str) -> bool:
    """Whether one term of a field selector is the node; with a backslash in it a comma need not end a term."""
    return "\\" not in selector and f"{PINNED_FIELD}={node}" in selector.replace("==", "=").split(",")


def _names(spec: Object, resource: str) -> Iterator[str]:
    if resource == "serviceaccounts":
        yield spec.get("serviceAccountName") or ""
    yield from _referred(spec, _REFERENCES[resource])


def _referred(value: Any, keys: dict[str, str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _referred(item, keys)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in keys:
                for each in item if isinstance(item, list) else [item]:
                    if isinstance(each, dict):  # a label may have such a key too
                        yield str(each.get("secretName") or each.get(keys[key]) or "")
            else:
                yield from _referred(item, keys)


def _unrelated(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def _lease_objection(node: str, wanted: Attributes) -> str | None:
    if wanted.namespace != _LEASE_NAMESPACE:
        return f'can only access leases in the "{_LEASE_NAMESPACE}" system namespace'
    named = wanted.verb == "create" or wanted.name == node
    return None if named else _LEASE_RULE


# -- writes ----------------------------------------------------------------------------------------------------


def check_own(resources: Resources, wanted: Attributes, request: Request) -> None:
    """Refuse a node what it may do to its own objects where the object is another's; raises 403."""
    node = wanted.user.node
    if not node or wanted.verb in ("get", "list", "watch"):
        return
    match (wanted.group, wanted.resource):
        case ("", "nodes"):
            name = _named(wanted, request)
            _insist(NODES, name, name == node, f"node {quoted(node)} is not allowed to modify node {quoted(name)}")
        case ("coordination.k8s.io", "leases"):
            name = _named(wanted, request)
            _insist(LEASES, name, name == node, _LEASE_RULE)
        case ("", "pods"):
            if wanted.verb == "create" and not wanted.subresource:
                _check_mirror(resources, node, body_object(request))
            else:
                _check_pod(resources, node, wanted)


def _check_pod(resources: Resources, node: str, wanted: Attributes) -> None:
    held = resources.store.get(PODS.id, wanted.namespace, wanted.name)
    does = {"": "delete pods", "status": "update pod status for pods", "eviction": "evict pods"}
    own = held is None or held.fields.get(PINNED_FIELD) == node
    what = does.get(wanted.subresource, "change pods")
    _insist(PODS, wanted.name, own, f"node {quoted(node)} can only {what} with spec.nodeName set to itself")


def _check_mirror(resources: Resources, node: str, pod: Object) -> None:
    """In upstream's order and words (admitPodCreate)."""
    name, spec = str(dig(pod, "metadata.name") or ""), pod.get("spec") or {}

    def insist(holds: bool, why: str) -> None:
        _insist(PODS, name, holds, why)

    mirror = MIRROR in (dig(pod, "metadata.annotations") or {})
    insist(mirror, f"pod does not have {quoted(MIRROR)} annotation, node {quoted(node)} can only create mirror pods")
    can_only = f"node {quoted(node)} can only create pods with"
    insist(spec.get("nodeName") == node, f"{can_only} spec.nodeName set to itself")
    owners = dig(pod, "metadata.ownerReferences") or []
    insist(len(owners) <= 1, f"{can_only} a single owner reference set to itself")
    owner = owners[0] if owners else {}
    own = (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) == ("v1", "Node", node)
    insist(own, f"{can_only} an owner reference set to itself")
    insist(owner.get("controller") is True, f"{can_only} a controller owner reference set to itself")
    why = f"node {quoted(node)} must not set blockOwnerDeletion on an owner reference"
    insist(not owner.get("blockOwnerDeletion"), why)
    uid = dig(resources.get(NODES, "", node), "metadata.uid")
    insist(owner.get("uid") == uid, f"node {node} UID mismatch: expected {owner.get('uid')} got {uid}")
    cannot = f"node {quoted(node)} can not create pods that reference"
    insist(not spec.get("serviceAccountName"), f"{cannot} a service account")
    for resource in ("secrets", "configmaps", "persistentvolumeclaims"):
        insist(not any(_names(spec, resource)), f"{cannot} {resource}")


def _insist(rtype: ResourceType, name: str, holds: bool, why: str) -> None:
    if not holds:
        raise forbidden(rtype, name, why)


def _named(wanted: Attributes, request: Request) -> str:
    """The object's name; a new one's stands in the body."""
    return wanted.name or str(dig(body_object(request), "metadata.name") or "")
