"""kube-scheduler's filters once more, one pod and one node at a time and from its documentation: what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from model.node import Node, TaintEffect
from model.pod.affinity import NodeTerm, PodTerm, SpreadConstraint
from model.pod.pod import Pod
from model.pod.spec import Toleration, TolerationOperator
from model.selector import Requirement
from scheduler.core.filters import podaffinity, ports, spread


class World(msgspec.Struct):
    """Nodes, who is on which, and the labels of namespaces."""

    nodes: Sequence[Node]
    residents: Sequence[tuple[Pod, str]]
    namespaces: dict[str, dict[str, str]]

    def on(self, name: str) -> list[Pod]:
        return [resident for resident, node in self.residents if node == name]

    def domain(self, key: str, value: str) -> list[Pod]:
        """Residents of all nodes with this label."""
        return [p for node in self.nodes if node.labels.get(key) == value for p in self.on(node.name)]


def first_reason(world: World, pod: Pod, node: Node) -> str:
    """The first filter's word for a node, empty where all agree."""
    filters: tuple[Callable[[World, Pod, Node], str], ...] = (_ports, _spread, _affinity, _anti_affinity, _existing)
    return next((reason for each in filters if (reason := each(world, pod, node))), "")


def node_matches(pod: Pod, node: Node) -> bool:
    """nodeSelector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    terms = pod.spec.affinity.nodes
    return terms is None or any(_node_term(term, node) for term in terms)


def _node_term(term: NodeTerm, node: Node) -> bool:
    if not term.labels and not term.names:
        return False
    return all(holds(r, node.labels) for r in term.labels) and all(holds(r, {r.key: node.name}) for r in term.names)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement.key, requirement.operator.value, requirement.values
    if operator in ("Gt", "Lt"):
        try:
            found, wanted = int(labels[key]), int(values[0])
        except (KeyError, ValueError):
            return False
        return found > wanted if operator == "Gt" else found < wanted
    table = {
        "In": key in labels and labels[key] in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return table[operator]


def means(world: World, holder: Pod, term: PodTerm, other: Pod) -> bool:
    """Whether a term of `holder` is about `other`."""
    wanted = term.namespace_selector
    listed = term.namespaces or ((holder.namespace,) if wanted is None else ())
    labels = world.namespaces.get(other.namespace, {})
    chosen = wanted is not None and all(holds(r, labels) for r in wanted.requirements)
    if other.namespace not in listed and not chosen:
        return False
    return term.selector is not None and all(holds(r, dict(other.labels)) for r in term.selector.requirements)


def _ports(world: World, pod: Pod, node: Node) -> str:
    for other in world.on(node.name):
        for mine in pod.spec.host_ports:
            for theirs in other.spec.host_ports:
                same = mine.port == theirs.port and mine.protocol == theirs.protocol
                if same and (mine.ip == theirs.ip or "0.0.0.0" in (mine.ip, theirs.ip)):
                    return ports.PORTS
    return ""


def _affinity(world: World, pod: Pod, node: Node) -> str:
    terms = pod.spec.affinity.pods
    if not terms:
        return ""
    if any(term.topology_key not in node.labels for term in terms):
        return podaffinity.AFFINITY

    def wanted(other: Pod) -> bool:
        return all(means(world, pod, term, other) for term in terms)

    def there(term: PodTerm) -> bool:
        return any(wanted(other) for other in world.domain(term.topology_key, node.labels[term.topology_key]))

    if all(there(term) for term in terms):
        return ""
    anywhere = any(
        wanted(other)
        for each in world.nodes
        for other in world.on(each.name)
        if any(term.topology_key in each.labels for term in terms)
    )
    return "" if not anywhere and wanted(pod) else podaffinity.AFFINITY


def _anti_affinity(world: World, pod: Pod, node: Node) -> str:
    for term in pod.spec.affinity.anti_pods:
        value = node.labels.get(term.topology_key)
        if value is not None and any(means(world, pod, term, p) for p in world.domain(term.topology_key, value)):
            return podaffinity.ANTI_AFFINITY
    return ""


def _existing(world: World, pod: Pod, node: Node) -> str:
    for each in world.nodes:
        for other in world.on(each.name):
            for term in other.spec.affinity.anti_pods:
                key = term.topology_key
                together = key in node.labels and node.labels.get(key) == each.labels.get(key)
                if together and means(world, other, term, pod):
                    return podaffinity.EXISTING
    return ""


def _spread(world: World, pod: Pod, node: Node) -> str:
    hard = [constraint for constraint in pod.spec.spread if constraint.hard]
    for constraint in hard:
        if constraint.topology_key not in node.labels:
            return spread.UNLABELLED
        if _too_uneven(world, pod, node, constraint, hard):
            return spread.SPREAD
    return ""


def _too_uneven(world: World, pod: Pod, node: Node, constraint: SpreadConstraint, hard: list[SpreadConstraint]) -> bool:
    key = constraint.topology_key
    in_domain: dict[str, int] = {}
    for each in world.nodes:
        if any(other.topology_key not in each.labels for other in hard):
            continue
        if constraint.honor_affinity and not node_matches(pod, each):
            continue
        if constraint.honor_taints and not tolerated(pod, each):
            continue
        number = sum(_counted(pod, constraint, other) for other in world.on(each.name))
        in_domain[each.labels[key]] = in_domain.get(each.labels[key], 0) + number
    least = min(in_domain.values(), default=0) if len(in_domain) >= constraint.min_domains else 0
    labels = dict(pod.labels)
    itself = constraint.selector is not None and all(holds(r, labels) for r in constraint.selector.requirements)
    return in_domain.get(node.labels[key], 0) + itself - least > constraint.max_skew


def _counted(pod: Pod, constraint: SpreadConstraint, other: Pod) -> bool:
    if other.deleting or other.namespace != pod.namespace or constraint.selector is None:
        return False
    return all(holds(requirement, dict(other.labels)) for requirement in constraint.selector.requirements)


def tolerated(pod: Pod, node: Node) -> bool:
    def tolerates(toleration: Toleration, key: str, value: str, effect: str) -> bool:
        if toleration.effect not in (None, effect) or toleration.key not in ("", key):
            return False
        return toleration.operator == TolerationOperator.EXISTS or (toleration.key == key and toleration.value == value)

    hard = [taint for taint in node.taints if taint.effect != TaintEffect.PREFER_NO_SCHEDULE]
    return all(any(tolerates(t, taint.key, taint.value, taint.effect) for t in pod.spec.tolerations) for taint in hard)
