"""Warnings to the writer of a pod that is let in: what is not acted on, and what is advised against."""

from __future__ import annotations

from collections.abc import Collection

from admission.core.advice import advised
from admission.core.validate import PodClaims
from kube.dialects import misread, unserved
from kube.dialects.coverage.asking_pods import in_pod
from kube.dialects.coverage.rows import Asked, sentence
from kube.dialects.queues.membership import names_unknown
from kube.dialects.upstream.amounts import amounts_of
from kube.objects import Pod


def name_of(pod: Pod) -> str:
    """As sentences begin."""
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name or pod.metadata.generate_name}".removesuffix("/")


def claims(pod: Pod) -> PodClaims:
    """What is validated. Raises ConfigurationFault where an amount cannot be read."""
    metadata = pod.metadata
    requests = amounts_of(pod.spec, name_of(pod)).requests()
    bound = bool(pod.spec.node_name)
    return PodClaims(metadata.labels or {}, metadata.annotations or {}, pod.spec.priority, requests, bound)


def told(pod: Pod, old: Pod | None, queues: Collection[str] | None = None) -> tuple[str, ...]:
    """What a pod asks for is settled when it is made, and so told once; `queues` are those there are, None: unknown."""
    where = name_of(pod)
    return (*_unmet(pod, old), *_unserved(pod, old, queues), *(advice(pod, where) if old is None else ()))


def advice(pod: Pod, where: str) -> tuple[str, ...]:
    """Of a pod as it is created; `where` names whoever is told."""
    amounts = amounts_of(pod.spec, name_of(pod))
    return advised(claims(pod), (*amounts.containers, *amounts.init), where)


def told_of_template(pod: Pod, where: str, place: str, queues: Collection[str] | None = None) -> tuple[str, ...]:
    """Of pods made of the template that stands at `place` of the object `where`."""
    asked = in_pod(pod.metadata, pod.spec)
    unmet = (Asked(each.row, tuple(f"{place}.{inner}" for inner in each.places)) for each in asked)
    return (*(sentence(where, each) for each in unmet), *_named(pod, where, queues, f"{place}."))


def _unserved(pod: Pod, old: Pod | None, queues: Collection[str] | None) -> tuple[str, ...]:
    """Queues and groups nobody serves, and what cannot be read; of a change what it did not say before."""
    known = set(_named(old, name_of(pod), queues)) if old else set()
    return tuple(each for each in _named(pod, name_of(pod), queues) if each not in known)


def _named(pod: Pod, where: str, queues: Collection[str] | None, prefix: str = "") -> tuple[str, ...]:
    metadata = pod.metadata
    found = (
        *unserved.in_metadata(metadata, where, prefix, queues or ()),
        *misread.in_metadata(metadata, where, prefix),
    )
    absent = "" if queues is None else names_unknown(metadata, where, queues, prefix)
    return (*(each.text for each in found), *([absent] if absent else ()))


def _unmet(pod: Pod, old: Pod | None) -> tuple[str, ...]:
    """What the pod asks for that nobody does; of a change what it did not ask for before."""
    known = {asked.row.name for asked in in_pod(old.metadata, old.spec)} if old else set()
    asked = [each for each in in_pod(pod.metadata, pod.spec) if each.row.name not in known]
    return tuple(sentence(name_of(pod), each) for each in asked)
