"""Equivalence classes: pods that every filter and score treats alike are judged once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

import msgspec

from model.cpubinding import CpuRequest
from model.pod.affinity import NOWHERE, Affinity, HostPort, SpreadConstraint
from model.pod.colocation import LoadTerms
from model.pod.pod import Pod
from model.pod.spec import Toleration
from model.qos import PriorityBand
from model.queue import NO_FLAVOR, Cell
from model.resources import PODS

T = TypeVar("T")


class Tolerance(msgspec.Struct, frozen=True, cache_hash=True):
    """What decides whether a node is admissible at all, whatever its room and whoever is there.

    `claims` are `namespace/name` of the volumes' claims.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    affinity: Affinity = NOWHERE
    claims: tuple[str, ...] = ()


class InterPod(msgspec.Struct, frozen=True, cache_hash=True):
    """What decides by who is there: whose pod it is, and its terms about other pods.

    `labels` are only those its own terms look at (whether it matches itself), so that an index among its labels does
    not make each pod a class of its own.
    """

    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    affinity: Affinity = NOWHERE
    spread: tuple[SpreadConstraint, ...] = ()
    ports: tuple[HostPort, ...] = ()


class Estimate(msgspec.Struct, frozen=True, cache_hash=True):
    """What scores count: amounts with defaults, and what its use is taken to be before it is measured.

    `unlimited`: measured use keeps it from no node, as a DaemonSet's, which runs everywhere, or one placed plainly.
    """

    scored: tuple[tuple[str, int], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    band: PriorityBand = PriorityBand.NONE
    unlimited: bool = False
    load: LoadTerms = LoadTerms()


class PodTraits(msgspec.Struct, frozen=True, cache_hash=True):
    """What other pods' terms may see of a pod, and what its own terms say about others; not part of its class.

    `terminating`: it is being deleted, so spreading does not count it any more.
    """

    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    affinity: Affinity = NOWHERE
    ports: tuple[HostPort, ...] = ()
    terminating: bool = False


NO_INTERPOD = InterPod()
UNSCORED = Estimate()


class PodClass(msgspec.Struct, frozen=True, cache_hash=True, weakref=True, dict=True):
    """(request in base units, sorted by resource and without zeros; the rest). Each pod also takes one of `pods`.

    `cpus` are whole ones of its own, None where it shares them. `flavors` are pairs of a resource and the flavour that
    it counts to; a resource that is not among them counts to none.
    """

    request: tuple[tuple[str, int], ...] = ((PODS, 1),)
    tolerance: Tolerance = Tolerance()
    interpod: InterPod = NO_INTERPOD
    estimate: Estimate = UNSCORED
    cpus: CpuRequest | None = None
    flavors: tuple[tuple[str, str], ...] = ()

    def cells(self, number: int = 1) -> Mapping[Cell, int]:
        """What so many pods take, by flavour and resource.

        The newest answer is kept: a workload's number is asked for again when it is refused, placed and charged.
        """
        known: tuple[int, Mapping[Cell, int]] | None = self.__dict__.get("newest")
        if known is not None and known[0] == number:
            return known[1]
        flavors = dict(self.flavors)
        found = {(flavors.get(resource, NO_FLAVOR), resource): number * amount for resource, amount in self.request}
        self.__dict__["newest"] = (number, found)
        return found


class KnownClasses:
    """One object for all equal classes, as long as anybody has it.

    Whoever makes a pod chooses how large its class is, so a bound on their number would bound no memory.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PodClass, ref[PodClass]] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def shared(self, pod_class: PodClass) -> PodClass:
        known = self._known.get(pod_class)
        found = known() if known is not None else None
        if found is None:
            self._known[pod_class] = ref(pod_class)
        return found or pod_class

    def of(self, pod: Pod) -> PodClass:
        """The class of a pod."""
        return self.shared(class_of(pod))


class ClassMemo(Generic[T]):
    """What was worked out of each class, as long as anybody has the class; of each the newest alone."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PodClass, tuple[object, T]] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, pod_class: PodClass, about: object, make: Callable[[], T]) -> T:
        """What `make` answered for the class and for what it is `about` besides."""
        known = self._known.get(pod_class)
        if known is None or known[0] != about:
            known = self._known[pod_class] = (about, make())
        return known[1]


def class_of(pod: Pod) -> PodClass:
    """The class of a pod."""
    spec = pod.spec
    amounts = {name: amount for name, amount in spec.requests.amounts.items() if amount > 0}
    nodes = Affinity(spec.affinity.nodes, spec.affinity.preferred_nodes)
    return PodClass(
        tuple(sorted((amounts | {PODS: 1}).items())),
        Tolerance(
            tuple(sorted(spec.node_selector.items())),
            spec.tolerations,
            NOWHERE if nodes == NOWHERE else nodes,
            tuple(sorted(f"{pod.namespace}/{claim}" for claim in spec.claims)),
        ),
        _interpod(pod),
        Estimate(
            tuple(sorted(spec.scored.amounts.items())),
            tuple(sorted(spec.limits.amounts.items())),
            pod.colocation.band,
            pod.daemon or spec.plain,
            pod.colocation.load,
        ),
        pod.colocation.cpus,
        spec.flavors,
    )


def pod_traits_of(pod: Pod) -> PodTraits:
    """What others may see of a pod."""
    labels = tuple(sorted(pod.labels.items()))
    return PodTraits(pod.namespace, labels, _about_pods(pod.spec.affinity), pod.spec.host_ports, pod.deleting)


def _interpod(pod: Pod) -> InterPod:
    spec = pod.spec
    terms = _about_pods(spec.affinity)
    if terms == NOWHERE and not spec.spread:
        return InterPod(ports=spec.host_ports) if spec.host_ports else NO_INTERPOD
    looked_at = _keys(terms, spec.spread)
    labels = tuple(sorted((key, value) for key, value in pod.labels.items() if key in looked_at))
    return InterPod(pod.namespace, labels, terms, spec.spread, spec.host_ports)


def _about_pods(affinity: Affinity) -> Affinity:
    if not (affinity.pods or affinity.anti_pods or affinity.preferred_pods):
        return NOWHERE
    return Affinity(pods=affinity.pods, anti_pods=affinity.anti_pods, preferred_pods=affinity.preferred_pods)


def _keys(terms: Affinity, spread: tuple[SpreadConstraint, ...]) -> frozenset[str]:
    """The pod labels that terms and constraints look at."""
    about = (*terms.pods, *terms.anti_pods, *(preferred.term for preferred in terms.preferred_pods))
    selectors = (*(term.selector for term in about), *(constraint.selector for constraint in spread))
    return frozenset(item.key for selector in selectors if selector is not None for item in selector.requirements)
