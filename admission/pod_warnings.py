"""Warnings to the writer of a pod that is let in: what is not acted on, and what is advised against."""

from __future__ import annotations

from admission.core.advice import advised
from admission.core.validate import PodClaims
from kube.dialects import misread, unserved
from kube.dialects.coverage.asking_pods import in_pod
from kube.dialects.coverage.rows import Asked, sentence
from kube.dialects.unserved import Unserved
from kube.dialects.upstream.amounts import amounts_of
from kube.objects import Pod


def name_of(pod: Pod) -> str:
    """As sentences begin."""
    return f"Pod {pod.metadata.namespace}/{pod.metadata.name or pod.metadata.generate_name}".removesuffix("/")


def claims(pod: Pod) -> PodClaims:
    """What is validated. Raises ConfigurationFault where an amount cannot be read."""
    metadata = pod.metadata
    requests = amounts_of(pod.spec, name_of(pod)).requests()
    return PodClaims(metadata.labels or {}, metadata.annotations or {}, pod.spec.priority, requests)


def told(pod: Pod, old: Pod | None) -> tuple[str, ...]:
    """What a pod asks for is settled when it is made, and so told once."""
    where = name_of(pod)
    return (*_unmet(pod, old), *_unserved(pod, old), *(advice(pod, where) if old is None else ()))


def advice(pod: Pod, where: str) -> tuple[str, ...]:
    """Of a pod as it is created; `where` names whoever is told."""
    amounts = amounts_of(pod.spec, name_of(pod))
    return advised(claims(pod), (*amounts.containers, *amounts.init), where)


def told_of_template(pod: Pod, where: str, place: str) -> tuple[str, ...]:
    """Of pods made of the template that stands at `place` of the object `where`."""
    asked = in_pod(pod.metadata, pod.spec)
    unmet = (Asked(each.row, tuple(f"{place}.{inner}" for inner in each.places)) for each in asked)
    named = _named(pod, where, f"{place}.")
    return (*(sentence(where, each) for each in unmet), *(each.text for each in named))


def _unserved(pod: Pod, old: Pod | None) -> tuple[str, ...]:
    """Queues and groups nobody serves, and what cannot be read; of a change what it did not say before."""
    known = {each.text for each in _named(old, name_of(pod))} if old else set()
    return tuple(each.text for each in _named(pod, name_of(pod)) if each.text not in known)


def _named(pod: Pod, where: str, prefix: str = "") -> tuple[Unserved, ...]:
    return (*unserved.in_metadata(pod.metadata, where, prefix), *misread.in_metadata(pod.metadata, where, prefix))


def _unmet(pod: Pod, old: Pod | None) -> tuple[str, ...]:
    """What the pod asks for that nobody does; of a change what it did not ask for before."""
    known = {asked.row.name for asked in in_pod(old.metadata, old.spec)} if old else set()
    asked = [each for each in in_pod(pod.metadata, pod.spec) if each.row.name not in known]
    return tuple(sentence(name_of(pod), each) for each in asked)
