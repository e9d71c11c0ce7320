"""When a probe counts as passed or failed: the kubelet's state machine. Pure.

Source: kubernetes pkg/kubelet/prober/worker.go (doProbe) and pkg/apis/core/v1/defaults.go (SetDefaults_Probe).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from embedded.node.objects.pod import PodContainer, ProbeSpec


class ProbeKind(StrEnum):
    """As the kubelet writes them in events."""

    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


class Outcome(msgspec.Struct, frozen=True):
    """One try. `output` is what the kubelet quotes; `errored` means that the try itself could not be made."""

    passed: bool
    output: str = ""
    errored: bool = False


class Timing(msgspec.Struct, frozen=True):
    """A probe's numbers with Kubernetes' defaults in place of what is not given."""

    initial_delay_seconds: float
    period_seconds: float
    timeout_seconds: float
    success_threshold: int
    failure_threshold: int


class ProbeTally(msgspec.Struct, frozen=True):
    """What a probe says now (`passing`), and how many equal outcomes in a row were seen last."""

    passing: bool | None
    last: bool | None = None
    in_a_row: int = 0


def timing(probe: ProbeSpec) -> Timing:
    return Timing(
        initial_delay_seconds=probe.initial_delay_seconds or 0,
        period_seconds=probe.period_seconds or 10,
        timeout_seconds=probe.timeout_seconds or 1,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )


def start_tally(kind: ProbeKind) -> ProbeTally:
    """Before the first try a container is alive, not ready, and neither started nor not."""
    return ProbeTally({ProbeKind.STARTUP: None, ProbeKind.READINESS: False, ProbeKind.LIVENESS: True}[kind])


def count(tally: ProbeTally, passed: bool, numbers: Timing) -> ProbeTally:
    """The tally after one more try: the verdict changes only when its threshold is reached."""
    in_a_row = tally.in_a_row + 1 if tally.last is passed else 1
    threshold = numbers.success_threshold if passed else numbers.failure_threshold
    return ProbeTally(passed if in_a_row >= threshold else tally.passing, passed, in_a_row)


def probe_of(container: PodContainer, kind: ProbeKind) -> ProbeSpec | None:
    return {
        ProbeKind.STARTUP: container.startup_probe,
        ProbeKind.READINESS: container.readiness_probe,
        ProbeKind.LIVENESS: container.liveness_probe,
    }[kind]


def unhealthy(kind: ProbeKind, outcome: Outcome) -> str:
    """The message of the event `Unhealthy`."""
    return f"{kind} probe {'errored' if outcome.errored else 'failed'}: {outcome.output}"


def kill_message(kind: ProbeKind, container: str) -> str:
    """The message of the event `Killing` when a probe ends a container."""
    return f"Container {container} failed {kind.lower()} probe, will be restarted"
