"""When a program that runs counts as hanging, in times that nobody waits for."""

from __future__ import annotations

import pytest

from local.liveness import Liveness, LivenessPolicy, Probe

PATIENCE = LivenessPolicy(period_seconds=5.0, answer_seconds=10.0, silence_seconds=60.0, misses=5)
MISS, OK = (10.0, "no answer"), (0.0, "")


def verdicts(*looks: tuple[float, str], pauses: dict[int, float] | None = None) -> list[str]:
    """What is judged of each probe (how long it took, why it was missed), `period` or a longer pause apart."""
    now, found = 100.0, []
    liveness = Liveness(PATIENCE, now)
    for number, (took, why) in enumerate(looks):
        began = now + (pauses or {}).get(number, PATIENCE.period_seconds)
        now = began + took
        found.append(liveness.judge(Probe(began, now, why)))
    return found


def test_a_silence_that_no_load_explains_ends_a_program() -> None:
    """Five probes of ten seconds with pauses: 70 s after the first of them began."""
    *before, last = verdicts(*[MISS] * 5)
    assert before == [""] * 4
    assert last == "has not answered for 70 s (no answer)"


def test_refused_connections_end_it_as_late() -> None:
    """They come at once, and the program may be about to listen."""
    found = verdicts(*[(0.0, "ConnectionRefusedError")] * 13)
    assert found[:12] == [""] * 12
    assert found[12] == "has not answered for 60 s (ConnectionRefusedError)"


PATIENT = {
    "an answer in between": ([MISS] * 4 + [OK] + [MISS] * 4, {}),
    "a slow one, too": ([MISS] * 4 + [(9.9, "")] + [MISS] * 4, {}),
    "this process did not run in time": ([MISS] * 9, {4: 12.0}),
    "a probe that took longer than it may": ([MISS] * 4 + [(40.0, "no answer")] + [MISS] * 4, {}),
    "the machine slept for a night": ([MISS] * 9, {2: 30_000.0, 6: 30_000.0}),
    "a machine so busy that every look is late": ([MISS] * 60, dict.fromkeys(range(60), 11.0)),
}


@pytest.mark.parametrize(("looks", "pauses"), PATIENT.values(), ids=PATIENT)
def test_what_a_busy_machine_does_ends_nothing(looks: list[tuple[float, str]], pauses: dict[int, float]) -> None:
    """An answer starts the count again, and so does a time in which the one who asks stood still."""
    assert not any(verdicts(*looks, pauses=pauses))
