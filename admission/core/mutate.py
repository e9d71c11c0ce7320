"""Mutation of a created pod: profiles that select it, lent resources and the annotation about them, its socket.

Source: Koordinator pkg/webhook/pod/mutating; docs/adr/0019-admission.md says where this differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from admission.core.applying import Merge, NotApplicable, applied
from admission.core.podfields import Document, Pod, annotations_of, labels_of, with_metadata
from admission.core.podsocket import with_socket
from admission.core.resourcespec import with_resource_spec
from admission.core.rewriting import NoLentForm, rewritten
from model.priority import PriorityClass
from model.profile import ColocationProfile
from model.reason import Reason
from model.selector import Selector

ANNOTATION_DRAW = "sublet.dev/profile-draw"
"""The pod's number for profiles with a probability: drawn once, it holds however often the pod comes by."""
DRAWS = 100


class MutationPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to pods beside what profiles say."""

    rewrite_resources: Annotated[
        bool, Meta(description="Turn cpu and memory of batch and mid pods into lent resources.")
    ] = True
    resource_spec: Annotated[
        bool,
        Meta(
            description="Write lent amounts into annotation node.koordinator.sh/extended-resource-spec, for other "
            "readers: the agent goes by the pod's own resources alone."
        ),
    ] = True


class PodFacts(msgspec.Struct, frozen=True):
    """What is known when a pod is created: profiles by name, and the labels of its namespace, None if it is not known.

    `draw` is a random number from 0 to 99, for a pod that has none yet.
    """

    profiles: tuple[ColocationProfile, ...]
    namespace_labels: Mapping[str, str] | None
    classes: Mapping[str, PriorityClass]
    draw: int


class MutationStep(msgspec.Struct, frozen=True):
    """One thing that was done or left undone; `profile` is empty for what no profile did."""

    reason: Reason
    profile: str = ""
    detail: str = ""


class Mutation(msgspec.Struct, frozen=True):
    """The pod as it is to be, and why; `refusal` is not empty where it must not be created at all."""

    pod: Document
    steps: tuple[MutationStep, ...] = ()
    refusal: str = ""


def created(pod: Pod, facts: PodFacts, policy: MutationPolicy, merge: Merge) -> Mutation:
    """A pod that is being created; applied to its own result it changes nothing."""
    run = _Run(pod, facts)
    try:
        for profile in sorted(facts.profiles, key=lambda each: each.name):
            run.consider(profile, merge)
        if policy.rewrite_resources and run.rewrites:
            run.rewrite()
    except (NotApplicable, NoLentForm) as refusal:
        return Mutation(dict(pod), tuple(run.steps), str(refusal))
    result = with_resource_spec(run.pod) if policy.resource_spec else run.pod
    return Mutation(with_socket(result), tuple(run.steps))


class _Run:
    """A pod on its way through the profiles.

    Profiles select by the labels that the pod came with: what one of them writes does not bring in another.
    """

    def __init__(self, pod: Pod, facts: PodFacts) -> None:
        self.pod = dict(pod)
        self.steps: list[MutationStep] = []
        self._facts = facts
        self._labels = labels_of(pod)
        self._applied: list[ColocationProfile] = []

    @property
    def rewrites(self) -> bool:
        """Whether a profile was applied, and none of those that were says to leave resources alone."""
        return bool(self._applied) and all(profile.rewrites for profile in self._applied)

    def consider(self, profile: ColocationProfile, merge: Merge) -> None:
        if not self._selected(profile):
            return
        if profile.fault:
            self._note(Reason.PROFILE_UNREADABLE, profile, profile.fault)
        elif self._drawn(profile):
            self.pod = applied(self.pod, profile, self._facts.classes, merge)
            self._applied.append(profile)
            self._note(Reason.PROFILE_APPLIED, profile)

    def rewrite(self) -> None:
        result = rewritten(self.pod)
        self.pod = result.pod
        if result.changes:
            self.steps.append(MutationStep(Reason.RESOURCES_LENT, detail=", ".join(result.changes)))

    def _selected(self, profile: ColocationProfile) -> bool:
        """A namespace that is not known is in no profile's selection but that of one that selects all."""
        if not profile.pods.matches(self._labels):
            return False
        if self._facts.namespace_labels is None and profile.namespaces != Selector():
            self._note(Reason.NAMESPACE_UNKNOWN, profile)
            return False
        return profile.namespaces.matches(self._facts.namespace_labels or {})

    def _drawn(self, profile: ColocationProfile) -> bool:
        """Exactly the profile's share of draws. A share of all or none needs no draw."""
        percent = profile.probability_pct
        if percent >= DRAWS:
            return True
        draw = _draw_of(self.pod, self._facts.draw)
        if percent > 0:
            self.pod = with_metadata(self.pod, "annotations", {ANNOTATION_DRAW: str(draw)})
        if draw >= percent:
            self._note(Reason.PROFILE_NOT_DRAWN, profile, f"{draw} of {DRAWS} drawn, below {percent} is in")
        return draw < percent

    def _note(self, reason: Reason, profile: ColocationProfile, detail: str = "") -> None:
        self.steps.append(MutationStep(reason, profile.name, detail))


def _draw_of(pod: Pod, otherwise: int) -> int:
    text = annotations_of(pod).get(ANNOTATION_DRAW, "")
    return int(text) if text in _DRAWN else otherwise


_DRAWN = frozenset(map(str, range(DRAWS)))
