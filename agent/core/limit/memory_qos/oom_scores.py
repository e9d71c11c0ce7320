"""Scores by which the kernel chooses whom it kills (`oom_score_adj`), by a pod's own words, of each container.

    score = what the pod says of the container, else of all; of a batch pod no lower than the kubelet gave it, and no
            lower than a Guaranteed pod's: nobody makes itself safer at the cost of an online pod or of the node

Source: Koordinator pkg/koordlet/runtimehooks/hooks/oomscoreadj; Kubernetes pkg/kubelet/qos/policy.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import oom_score_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, Missing, Observation, Places
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.reason import Reason

_GUARANTEED = -997
"""Kubernetes' guaranteedOOMScoreAdj."""


def score_knobs(layout: Layout, places: Places, pod: Pod, *, on: bool) -> Iterator[Knob]:
    """Of the containers that the pod speaks of; none where the setting is off."""
    place, told = places.pods.get(pod.uid), pod.colocation.oom_scores
    if not on or told is None or place is None or pod.terminal:
        return
    for name, path in place.containers.items():
        if told.of(name) is not None:
            yield oom_score_knob(layout, path)


def oom_scores(layout: Layout, observation: Observation, pods: Iterable[Pod], *, on: bool) -> Iterator[Limit]:
    """Of every container whose score was read: what its pod wants."""
    for pod in pods if on else ():
        place, told = observation.places.pods.get(pod.uid), pod.colocation.oom_scores
        if told is None or place is None or pod.terminal:
            continue
        for name, path in place.containers.items():
            knob, wanted = oom_score_knob(layout, path), told.of(name)
            reading = observation.knobs.get(knob)
            if wanted is None or reading is None or isinstance(reading.kernel, Missing):
                continue
            before = reading.original if reading.last_written is not None else reading.kernel
            terms = TermSum().add("by annotation", wanted).at_least("a Guaranteed pod's", _GUARANTEED)
            if (pod.best_effort or pod.borrows) and isinstance(before, int):
                terms.at_least("the kubelet's, of a batch pod", before)
            yield _limit(knob, terms, observation.at_seconds, f"pod {pod.key}, container {name}")


def _limit(knob: Knob, terms: TermSum, now: float, detail: str) -> Limit:
    decision = Decision(
        knob.subject, knob.file, terms.value, Unit.NUMBER, Reason.OOM_SCORE, terms.terms, "", now, detail
    )
    return Limit(knob, terms.value, decision)
