"""Status of a TrainingJob: written as its definition has it, and read back."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.dialects.jobs.status_fields import Count, converted, counts_of, phase_of, time_text, without_nothing
from kube.dialects.queues.quota import GPU
from kube.objects import Quantities, Time, unix_seconds
from model import resources
from model.condition import ConditionStatus
from model.fault import ConfigurationFault
from model.job.status import Allocation, JobCondition, JobEvent, JobPhase, JobStatus, TaskCounts, World
from model.resources import CPU, MEMORY, amount_text

PHASES = {
    JobPhase.PENDING: "Pending",
    JobPhase.QUEUED: "Queued",
    JobPhase.RUNNING: "Running",
    JobPhase.RESTARTING: "Suspended",
    JobPhase.SUSPENDING: "Suspended",
    JobPhase.SUSPENDED: "Suspended",
    JobPhase.COMPLETING: "Running",
    JobPhase.TERMINATING: "Running",
    JobPhase.SUCCEEDED: "Succeeded",
    JobPhase.TERMINATED: "Failed",
    JobPhase.FAILED: "Failed",
}
"""The phases of its definition."""


class _Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str = ""
    message: str = ""


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    reason: str = ""
    message: str = ""
    timestamp: Time | None = None


class _Allocated(msgspec.Struct, frozen=True):
    gpus: Count = 0
    cpu: Any = None
    memory: Any = None
    nodes: list[str] = []


class _Run(msgspec.Struct, frozen=True, rename="camel"):
    number: Count = 0
    stage: str = ""
    floors: dict[str, Count] = {}
    queued_time: Time | None = None
    seconds: Count = 0
    shrunk: bool = False
    in_a_row: Count = 0
    rest_time: Time | None = None


class _World(msgspec.Struct, frozen=True):
    generation: Count = 0
    size: Count = 0
    digest: str = ""


class _Training(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    start_time: Time | None = None
    end_time: Time | None = None
    run: _Run = _Run()
    failures: Count = 0
    evictions: Count = 0
    scale: dict[str, Count] = {}
    last_scale_time: Time | None = None
    world: _World = _World()
    allocated_resources: _Allocated = _Allocated()
    replica_statuses: dict[str, dict[str, Count]] = {}
    conditions: list[_Condition] = []
    events: list[_Event] = []


def read_status(raw: object) -> JobStatus:
    """What was written last; a new one where nothing was, or it cannot be read."""
    told = converted(raw, _Training)
    return JobStatus(
        phase=phase_of(told.run.stage),
        reason=told.reason,
        message=told.message,
        since_seconds=unix_seconds(told.last_transition_time),
        run=told.run.number,
        floors=told.run.floors,
        failures=told.failures,
        evictions=told.evictions,
        tasks={name: counts_of(counts) for name, counts in told.replica_statuses.items()},
        scale=told.scale,
        scaled_seconds=unix_seconds(told.last_scale_time),
        shrunk=told.run.shrunk,
        world=World(told.world.generation, told.world.size, told.world.digest),
        in_a_row=told.run.in_a_row,
        rest_seconds=unix_seconds(told.run.rest_time),
        began_seconds=unix_seconds(told.start_time),
        ended_seconds=unix_seconds(told.end_time),
        queued_seconds=unix_seconds(told.run.queued_time),
        running_seconds=float(told.run.seconds),
        allocation=_allocation(told.allocated_resources),
        conditions=tuple(_condition(each) for each in told.conditions),
        events=tuple(_event(each) for each in told.events),
    )


def _condition(told: _Condition) -> JobCondition:
    status = ConditionStatus(told.status) if told.status in tuple(ConditionStatus) else ConditionStatus.UNKNOWN
    return JobCondition(told.type, status, told.reason, told.message, unix_seconds(told.last_transition_time))


def _event(told: _Event) -> JobEvent:
    return JobEvent(told.reason, told.message, unix_seconds(told.timestamp), told.type == "Warning")


def _allocation(told: _Allocated) -> Allocation:
    amounts: Quantities = {GPU: told.gpus, CPU: told.cpu or 0, MEMORY: told.memory or 0}
    try:
        found = resources.parse_resources({name: amount for name, amount in amounts.items() if amount}, "status")
    except ConfigurationFault:
        return Allocation()
    return Allocation(found, tuple(told.nodes))


def written_status(status: JobStatus) -> dict[str, Any]:
    """The whole status."""
    amounts = status.allocation.amounts
    told = {
        "phase": PHASES[status.phase],
        "reason": status.reason,
        "message": status.message,
        "lastTransitionTime": time_text(status.since_seconds),
        "startTime": time_text(status.began_seconds),
        "endTime": time_text(status.ended_seconds),
        "run": {
            "number": status.run,
            "stage": status.phase.value,
            "floors": dict(status.floors),
            "queuedTime": time_text(status.queued_seconds),
            "seconds": int(status.running_seconds),
            "shrunk": status.shrunk or None,
            "inARow": status.in_a_row or None,
            "restTime": time_text(status.rest_seconds),
        },
        "failures": status.failures,
        "evictions": status.evictions,
        "scale": dict(status.scale),
        "lastScaleTime": time_text(status.scaled_seconds),
        "world": msgspec.structs.asdict(status.world) if status.world.digest else None,
        "allocatedResources": {
            "gpus": amounts[GPU],
            "cpu": amount_text(amounts[CPU], CPU),
            "memory": amount_text(amounts[MEMORY], MEMORY),
            "nodes": list(status.allocation.nodes),
        },
        "replicaStatuses": {name: _counts(counts) for name, counts in status.tasks.items()},
        "conditions": [_written_condition(each) for each in status.conditions],
        "events": [_written_event(each) for each in status.events],
    }
    return without_nothing(told)


def _counts(counts: TaskCounts) -> dict[str, int]:
    """All that a reader looks for, and of the others what there is."""
    always = ("running", "succeeded", "failed", "pending")
    told: dict[str, int] = msgspec.to_builtins(counts)
    return {name: count for name, count in told.items() if count or name in always}


def _written_condition(condition: JobCondition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status.value,
        "lastTransitionTime": time_text(condition.since_seconds),
        "reason": condition.reason,
        "message": condition.message,
    }


def _written_event(event: JobEvent) -> dict[str, Any]:
    return {
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message,
        "timestamp": time_text(event.at_seconds),
    }
