"""When a probe counts as passed or failed."""

from __future__ import annotations

import msgspec
import pytest

from embedded.node.objects.pod import ProbeSpec
from embedded.node.pods.probe_results import (
    Outcome,
    ProbeKind,
    ProbeTally,
    count,
    kill_message,
    start_tally,
    timing,
    unhealthy,
)


@pytest.mark.parametrize(
    ("kind", "tries", "verdicts"),
    [
        pytest.param(ProbeKind.LIVENESS, "ff", [True, True], id="alive until the third failure"),
        pytest.param(ProbeKind.LIVENESS, "fff", [True, True, False], id="dead at the third"),
        pytest.param(ProbeKind.LIVENESS, "ffpff", [True] * 5, id="one success starts the count again"),
        pytest.param(ProbeKind.READINESS, "pp", [False, True], id="ready at the second success"),
        pytest.param(ProbeKind.READINESS, "ppff", [False, True, True, True], id="ready until the third failure"),
        pytest.param(ProbeKind.READINESS, "ppfffp", [False, True, True, True, False, False], id="and back"),
        pytest.param(ProbeKind.STARTUP, "fpp", [None, None, True], id="neither until a threshold"),
    ],
)
def test_count(kind: ProbeKind, tries: str, verdicts: list[bool | None]) -> None:
    """A verdict changes only when its threshold of equal outcomes in a row is reached."""
    numbers, tally = timing(ProbeSpec(success_threshold=2, failure_threshold=3)), start_tally(kind)
    seen = []
    for each in tries:
        tally = count(tally, each == "p", numbers)
        seen.append(tally.passing)
    assert seen == verdicts


def test_defaults() -> None:
    """Kubernetes' own, where the object does not say."""
    numbers = msgspec.structs.astuple(timing(ProbeSpec()))
    assert numbers == (0, 10, 1, 1, 3)
    assert start_tally(ProbeKind.STARTUP) == ProbeTally(None)


def test_words() -> None:
    """Events as the kubelet words them."""
    assert unhealthy(ProbeKind.READINESS, Outcome(False, "boom")) == "Readiness probe failed: boom"
    assert unhealthy(ProbeKind.LIVENESS, Outcome(False, "no", errored=True)) == "Liveness probe errored: no"
    assert kill_message(ProbeKind.STARTUP, "main") == "Container main failed startup probe, will be restarted"
