"""Whom the kernel kills first, by a pod's own words."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.memory_qos.oom_scores import oom_scores, score_knobs
from agent.core.observe.knobs import oom_score_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, KnobReading, Missing, Places, PodPlace
from model.pod.colocation import OomScores
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.reason import Reason
from tests.pods import with_fields

V1 = Layout()
WEB, JOB = "/kubepods/burstable/podweb", "/kubepods/besteffort/podjob"
APP, LOG = oom_score_knob(V1, f"{WEB}/app"), oom_score_knob(V1, f"{WEB}/log")
RUN = oom_score_knob(V1, f"{JOB}/run")
PLACES = Places(
    {"uid-web": PodPlace(WEB, {"app": APP.cgroup, "log": LOG.cgroup}), "uid-job": PodPlace(JOB, {"run": RUN.cgroup})}
)


def online(build: Any, scores: OomScores | None, **more: Any) -> Pod:
    pod: Pod = with_fields(build.pod("web", **more), oom_scores=scores)
    return pod


def batch(build: Any, score: int) -> Pod:
    pod: Pod = with_fields(build.batch("job"), oom_scores=OomScores(score))
    return pod


def test_which_are_read(build: Any) -> None:
    """Containers that the pod speaks of, where the setting is on."""
    one = online(build, OomScores(by_container=(("app", 5),)))
    both = online(build, OomScores(100, (("app", 5),)))
    assert [*score_knobs(V1, PLACES, one, on=True)] == [APP]
    assert [*score_knobs(V1, PLACES, both, on=True)] == [APP, LOG]
    assert [*score_knobs(V1, PLACES, both, on=False)] == [*score_knobs(V1, PLACES, online(build, None), on=True)] == []
    assert [*score_knobs(V1, Places(), both, on=True)] == []
    assert [*score_knobs(V1, PLACES, online(build, OomScores(1), phase=PodPhase.FAILED), on=True)] == []
    assert oom_score_knob(Layout(version=2), WEB).controller == "" and APP.controller == "memory"


CASES: dict[str, tuple[OomScores, KnobReading, int | None]] = {
    "as it says": (OomScores(-500), KnobReading(200), -500),
    "raised": (OomScores(800), KnobReading(200), 800),
    "no safer than a Guaranteed pod": (OomScores(-1000), KnobReading(200), -997),
    "of another container": (OomScores(by_container=(("log", 5),)), KnobReading(200), None),
    "no process": (OomScores(5), KnobReading(Missing("/x", Absence.GONE)), None),
}


@pytest.mark.parametrize(("scores", "reading", "expected"), CASES.values(), ids=CASES)
def test_of_an_online_pod(build: Any, scores: OomScores, reading: KnobReading, expected: int | None) -> None:
    """With its terms."""
    pod, seen = online(build, scores), build.seen(knobs={APP: reading}, places=PLACES)
    found = [*oom_scores(V1, seen, (pod,), on=True)]
    assert [limit.value for limit in found] == ([] if expected is None else [expected])
    assert all(limit.decision.reason is Reason.OOM_SCORE and limit.decision.value == limit.value for limit in found)
    assert [*oom_scores(V1, seen, (pod,), on=False)] == []


BATCH: dict[str, tuple[int, KnobReading, int]] = {
    "no safer than the kubelet made it": (-500, KnobReading(1000), 1000),
    "nor once it was raised": (500, KnobReading(950, 950, 900), 900),
    "it may offer itself": (1000, KnobReading(900), 1000),
}


@pytest.mark.parametrize(("score", "reading", "expected"), BATCH.values(), ids=BATCH)
def test_of_a_batch_pod(build: Any, score: int, reading: KnobReading, expected: int) -> None:
    """Online pods would be killed in its place."""
    pod, seen = batch(build, score), build.seen(knobs={RUN: reading}, places=PLACES)
    (limit,) = oom_scores(V1, seen, (pod,), on=True)
    assert limit.value == expected
