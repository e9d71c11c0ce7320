"""Sources of what is answered about this agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from agent.core.observe.observation import Knob, Missing, Value
from agent.report.decision_feed import DecisionFeed
from agent.report.status import AgentStatus
from agent.settings import AgentSettings
from model.decision import Decision
from model.metrics import MetricSample


class AnswerSources(msgspec.Struct, frozen=True):
    """Where answers come from; the callables are other edges' read-only views."""

    node: str
    version: str
    settings: AgentSettings
    status: AgentStatus
    feed: DecisionFeed
    read_knob: Callable[[Knob], Value | Missing]
    knob_path: Callable[[Knob], Path]
    link_connected: Callable[[], bool]
    brake_cuts: Callable[[], int]
    brake_mechanisms: Callable[[], tuple[str, ...]]
    wakes: Callable[[], Mapping[str, int]]
    cgroups: str
    published: Callable[[], tuple[Decision, ...]]


class NodeEvent(Protocol):
    """Records one Event about the node."""

    def __call__(self, reason: str, message: str, *, warning: bool) -> None: ...


class ServiceSources(msgspec.Struct, frozen=True):
    """What is told of the agent: to diagnostics, to Prometheus, to probes (what is wrong; empty where nothing is).

    `record` tells of the node by an Event.
    """

    sources: AnswerSources
    series: Callable[[], Mapping[str, list[MetricSample]]]
    not_alive: Callable[[], str]
    not_ready: Callable[[], str]
    record: NodeEvent
