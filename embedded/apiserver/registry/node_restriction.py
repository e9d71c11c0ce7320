"""What a node may not change of its own objects: what would steer pods to it that are meant for others.

Only what the node itself asks for is judged, not what admission by others makes of it. Source: kubernetes
`plugin/pkg/admission/noderestriction/admission.go`; the labels that a kubelet may set are those of
`k8s.io/kubelet/pkg/apis/well_known_labels.go`.

https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
"""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object, dig, name_of, quoted
from embedded.apiserver.apimachinery.resource_types import NODES, PODS, ResourceType
from embedded.apiserver.apimachinery.status import forbidden
from embedded.apiserver.request.user_info import UserInfo

_RESTRICTED = "node-restriction.kubernetes.io"
_KUBERNETES = ("kubernetes.io", "k8s.io")
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_OWN_LABELS = frozenset(
    {
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    }
)


def check_node_write(user: UserInfo, rtype: ResourceType, old: Object | None, new: Object) -> None:
    """Refuse (403) what a kubelet may not write of its Node, or of the status of a pod; `old` is None of a new one."""
    node = user.node
    if not node:
        return
    if rtype is NODES and (why := _objection(node, old, new)):
        raise forbidden(rtype, name_of(new), why)
    if rtype is PODS and old is not None and _labels(old) != _labels(new):
        raise forbidden(rtype, name_of(new), f"node {quoted(node)} cannot update labels through pod status")


def _objection(node: str, old: Object | None, new: Object) -> str:
    labels = _forbidden_labels({} if old is None else _labels(old), _labels(new))
    source = dig(new, "spec.configSource")
    if old is None:
        if source is not None:
            return f"node {quoted(node)} is not allowed to create with non-nil configSource"
        return f"node {quoted(node)} is not allowed to set the following labels: {labels}" if labels else ""
    if source not in (None, dig(old, "spec.configSource")):
        return f"node {quoted(node)} is not allowed to update configSource to a new non-nil configSource"
    for what, path in (("taints", "spec.taints"), ("ownerReferences", "metadata.ownerReferences")):
        if (dig(old, path) or []) != (dig(new, path) or []):
            return f"node {quoted(node)} is not allowed to modify {what}"
    return f"is not allowed to modify labels: {labels}" if labels else ""


def _labels(obj: Object) -> dict[str, str]:
    return dig(obj, "metadata.labels") or {}


def _forbidden_labels(old: dict[str, str], new: dict[str, str]) -> str:
    changed = {key for key, _ in old.items() ^ new.items()}
    return ", ".join(sorted(filter(_forbidden, changed)))


def _forbidden(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    if _within(domain, _RESTRICTED):
        return True
    own = key in _OWN_LABELS or any(_within(domain, owned) for owned in _OWN_DOMAINS)
    return not own and any(_within(domain, owned) for owned in _KUBERNETES)


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
