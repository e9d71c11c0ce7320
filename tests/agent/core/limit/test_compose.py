"""Two strategies that ask for one control file: its owner has its way."""

from __future__ import annotations

from agent.core.limit.compose import composed
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import Strategy
from agent.core.observe.knobs import pids_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from model.decision import Decision, Term, Unit
from model.reason import Reason

LAYOUT = Layout()
POD = quota_knob(LAYOUT, "/kubepods/besteffort/podx")


def limit(knob: Knob, value: int) -> Limit:
    terms = (Term("x", value),)
    return Limit(knob, value, Decision(knob.subject, knob.file, value, Unit.MICROSECONDS, Reason.COMPUTED, terms))


def test_limits_of_all_strategies() -> None:
    """Each file by its owner."""
    quota, pids = limit(POD, 5), limit(pids_knob(LAYOUT, POD.cgroup), 7)
    found = composed(LAYOUT, {Strategy.BATCH_RESOURCES: [quota], Strategy.PROCESS_LIMITS: [pids]})
    assert (found.limits, found.refused) == ((quota, pids), ())


def test_the_owner_has_its_way() -> None:
    """Whatever the order; the other is told why, with its own terms."""
    own, other = limit(POD, 5), limit(POD, 9)
    found = composed(LAYOUT, {Strategy.BATCH_RESOURCES: [own], Strategy.CPU_SUPPRESS: [other]})
    turned = composed(LAYOUT, {Strategy.CPU_SUPPRESS: [other], Strategy.BATCH_RESOURCES: [own]})
    assert found == turned and found.limits == (own,)
    (refused,) = found.refused
    assert (refused.value, refused.decision.value) == (9, 9)
    assert refused.decision.reason is Reason.KNOB_OF_OTHER_STRATEGY
    assert refused.decision.detail == "cpuSuppress asked for 9; the file is batchResources's there"


def test_a_file_of_nobody() -> None:
    """The quota of all burstable pods is the kubelet's, outside the tree of pods nothing is anybody's."""
    for cgroup in ("/kubepods/burstable", "/system.slice"):
        found = composed(LAYOUT, {Strategy.BATCH_RESOURCES: [limit(quota_knob(LAYOUT, cgroup), 5)]})
        assert found.limits == () and "nobody's" in found.refused[0].decision.detail
