"""Node reports that keep what is handed in, and the messages of an agent, for tests of the link."""

from __future__ import annotations

from collections.abc import Iterable

from model.decision import Decision
from model.report import CheckpointSaved, EvictionCost, NodeReport, Usage
from wire import codec
from wire.v1 import link_pb2

REPORT = NodeReport(5.0, Usage(1), Usage(), Usage(), Usage())


class FakeDesk:
    """Keeps what is handed in."""

    def __init__(self) -> None:
        self.links: list[str] = []
        self.reports: list[tuple[str, NodeReport]] = []
        self.decisions: list[Decision] = []
        self.saved: list[CheckpointSaved] = []
        self.costs_now = (EvictionCost("u1", "default/train", 1),)

    def connected(self, node: str) -> None:
        self.links.append(f"+{node}")

    def disconnected(self, node: str) -> None:
        self.links.append(f"-{node}")

    def report(self, node: str, report: NodeReport) -> None:
        self.reports.append((node, report))

    def decision(self, node: str, decision: Decision) -> None:
        self.decisions.append(decision)

    def checkpoints(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None:
        self.saved += [saved for _, saved in told]

    def costs(self, node: str) -> tuple[EvictionCost, ...]:
        return self.costs_now


def hello(node: str = "n1", sequence: int = 1) -> link_pb2.NodeMessage:
    return link_pb2.NodeMessage(sequence=sequence, hello=link_pb2.Hello(node=node, agent_version="1", boot_id="b"))


def report(sequence: int) -> link_pb2.NodeMessage:
    return link_pb2.NodeMessage(sequence=sequence, report=codec.report_to_wire(REPORT))
