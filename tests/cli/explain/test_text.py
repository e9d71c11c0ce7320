"""Text of answers: the record with its terms, and what a person asks next."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cli.explain.text import evictions_text, gang_text, limits_text, node_text, pod_text
from model.decision import Decision, Term, Unit
from model.explain import OFFERED
from model.placement import Scored, ScoreTerm
from model.reason import Reason
from model.report import Usage
from view.answers import (
    EvictionsAnswer,
    GangAnswer,
    GangExplained,
    LimitAnswer,
    NodeAnswer,
    PendingAnswer,
    PodAnswer,
)

AT = 1_800_000_000.0
WAITING = Decision("gang/ml/train", "nodes", 0, Unit.NODES, Reason.GANG_DOES_NOT_FIT, (), at_seconds=AT)
INVALID = Decision("gang/ml/bad", "nodes", 0, Unit.NODES, Reason.GANG_INVALID, (), detail="minMember is 0; correct it")
LENT = Decision(
    "node/n1", "kubernetes.io/batch-cpu", 770, Unit.MILLI_CPU, Reason.COMPUTED, (Term("capacity", 770, "all of it"),)
)
QUOTA = Decision(
    "cgroup/besteffort", "cpu.max", 130_000, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("ceiling", 130_000),)
)


def node(**fields: Any) -> NodeAnswer:
    """A node of 2 CPUs, observed at AT."""
    facts: dict[str, Any] = {
        "node": "n1",
        "agent_version": "9.9",
        "observed_at_seconds": AT,
        "capacity": Usage(2000, 4 << 30),
        "usage": Usage(900, 1 << 30),
        "system": Usage(),
        "online": Usage(),
        "best_effort": Usage(),
        "ready_reason": "LendingActive",
        "link_connected": True,
        "ticks": 12,
        "late_ticks": 1,
        "brake_cuts": 2,
        "brake_mechanism": "counters",
        "reclaimable": (LENT,),
    }
    return NodeAnswer(**(facts | fields))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "node n1  LendingActive  observed 3.0 s ago"),
        ({"observed_at_seconds": 0.0, "ready_reason": ""}, "node n1  not judged yet  observed never"),
        ({"ready_message": "ConfigMap a/b: x"}, "  ConfigMap a/b: x"),
        ({}, "  used           cpu     900m   memory          1Gi"),
        ({"host_applications": {"nginx": Usage(50, 1 << 20)}}, "    nginx        cpu      50m   memory          1Mi"),
        ({}, "  best-effort CPU: no known limit now, its pods asked for 0"),
        (
            {"best_effort_limit_millis": 800, "best_effort_request_millis": 1500},
            "  best-effort CPU: 800m at most now, its pods asked for 1500m",
        ),
        ({}, "  agent 9.9: 12 ticks, 1 late; brake counters, 2 cuts; link to the scheduler up"),
        (
            {"brake_mechanism": "", "link_connected": False},
            "  agent 9.9: 12 ticks, 1 late; brake none, 2 cuts; link to the scheduler down",
        ),
        ({"wakes": {"memory_mark": 0, "cpu_use": 3}}, "  early ticks: 3 by cpu_use"),
        ({"cgroups": "v2"}, "  cgroups v2"),
        ({}, "  + capacity              770   all of it"),
        ({"reclaimable": ()}, "nothing has been computed yet"),
    ],
)
def test_a_node(fields: dict[str, Any], line: str) -> None:
    """Its usage, its agent, and what may be lent with the terms."""
    assert line in node_text(node(**fields), AT + 3).splitlines()


def test_what_equals_another_number_is_told_where_all_is_asked_for() -> None:
    """Else it is counted."""
    answer = node(reclaimable=(LENT, msgspec.structs.replace(LENT, policy=OFFERED)))
    short, whole = node_text(answer, AT), node_text(answer, AT, everything=True)
    assert short.endswith("\n\n1 more decisions with --all") and short.count("batch-cpu") == 1
    assert "more decisions" not in whole and whole.count("batch-cpu") == 2


@pytest.mark.parametrize(
    ("held", "matches", "last"),
    [
        ("130000", True, "the kernel holds 130000: as decided"),
        ("-1", False, "the kernel holds -1: NOT as decided (130000)"),
    ],
)
def test_a_limit_is_compared_with_the_kernel(held: str, matches: bool, last: str) -> None:
    """The terms, the path, and what the file holds."""
    lines = limits_text((LimitAnswer(QUOTA, "/sys/fs/cgroup/cpu.max", held, matches),)).splitlines()
    assert lines[-2:] == ["  /sys/fs/cgroup/cpu.max", f"  {last}"]


def test_no_limit_and_no_eviction() -> None:
    assert limits_text(()) == "the agent keeps no limit at this moment"
    assert evictions_text(EvictionsAnswer((), (), ()), AT).split("\n\n") == [
        "no rule that evicts is on, or nothing was measured yet",
        "no pod is terminating",
        "no pod was evicted since the agent started",
    ]


@pytest.mark.parametrize(
    ("until", "told"),
    [(None, "evicted 10 s ago, counted as gone for 20 s"), (AT + 5, "told 10 s ago, evicted in 5 s")],
)
def test_a_pod_that_terminates(until: float | None, told: str) -> None:
    """One that was only told so far, or one whose eviction was ordered."""
    pending = PendingAnswer("u1", {}, AT - 10, AT + 20, until)
    assert f"pod u1 is terminating, {told}" in evictions_text(EvictionsAnswer((), (pending,), ()), AT)


def test_an_attempt_has_its_time() -> None:
    """What was found then need not hold any more; programs have the same in seconds. None is known: none is told."""
    waiting = PodAnswer("ml", "train-0", "", "ml/train", 1, "0/1 nodes fit", WAITING, preemption=WAITING)
    gang = GangExplained(GangAnswer("ml", "train", 2, 2, 0, ""), 1, "0/1 nodes fit", WAITING, None, "", {})
    undated = PodAnswer("ml", "bad-0", "", "", 0, "", INVALID)
    for text, times in ((pod_text(waiting, AT + 34), 2), (gang_text(gang, AT + 34.4), 1)):
        assert text.count("\n  decided at 2027-01-15T08:00:00Z, 34 s ago") == times
    unserved = PodAnswer("ml", "a", "n1", "", 0, "", WAITING, unserved=("Pod ml/a: nothing acts on x yet: y",))
    assert "\n  Pod ml/a: nothing acts on x yet: y\n" in pod_text(unserved, AT)
    assert "decided at" not in pod_text(undated, AT)


def test_scores_of_a_placed_pod_are_a_table() -> None:
    """One row a score, weight × points on the chosen node and on the next best, and what they sum to."""
    terms = (ScoreTerm("NodeResourcesFit", 1, 75, 50), ScoreTerm("NodeAffinity", 2, 100, 0))
    placed = PodAnswer("ml", "a", "n3", "", 0, "", WAITING, scored=Scored("n3", "n2", terms))
    assert pod_text(placed, AT).endswith(
        """

scores                 n3      n2
NodeResourcesFit   1 × 75  1 × 50
NodeAffinity      2 × 100   2 × 0
= total               275      50"""
    )
    alone = PodAnswer("ml", "a", "n3", "", 0, "", WAITING, scored=Scored("n3", "", terms[:1]))
    assert pod_text(alone, AT).endswith("scores                n3\nNodeResourcesFit  1 × 75\n= total               75")
    assert json.loads(msgspec.json.encode(placed))["scored"]["terms"][1]["chosen"] == 100
