"""Release: a control file that nothing wants any more gets its original back, and the state file forgets it.

A strategy is switched off, or a pod is not what it was. Best effort's ceilings stay (`Strategy.stays`), and so does
everything while it is unknown what is wanted. What another program wrote since is left to it.
"""

from __future__ import annotations

import msgspec

from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import Form, owner_of, row_of
from agent.core.observe.knobs import UNLIMITED, is_of_kubelet, same
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob, KnobReading, Missing, Value
from model.decision import Decision, TermSum
from model.reason import Reason
from model.topology import parse_cpus


class KnobClaims(msgspec.Struct, frozen=True):
    """The control files that strategies want, whatever was measured, and the cgroups of which these are all."""

    layout: Layout
    knobs: frozenset[Knob]
    cgroups: frozenset[str]

    def leave(self, knob: Knob) -> bool:
        """Nothing wants this file any more."""
        return knob.cgroup in self.cgroups and knob not in self.knobs and is_released(self.layout, knob)


def is_released(layout: Layout, knob: Knob) -> bool:
    """Its value goes with the wish for it; one that no strategy may write is left from an older agent."""
    owner = owner_of(layout, knob)
    return owner is None or not owner.stays


def released(knob: Knob, reading: KnobReading, now: float) -> Limit | None:
    """The original where the file holds our value, else what it holds; None where there is nothing to give back."""
    kernel, original = reading.kernel, reading.original
    if original is None or isinstance(kernel, Missing):
        return None
    ours = reading.last_written is not None and same(knob, kernel, reading.last_written)
    # An agent that has just started takes for its own what the kubelet wrote while none ran.
    ours = ours and not is_of_kubelet(knob, kernel)
    if ours or kernel == original:
        return to_original(knob, original, now)
    return to_original(knob, kernel, now, detail="another program wrote it since: its value stays")


def within_quota(limit: Limit, quota: Value | Missing | None, now: float) -> Limit:
    """A burst is given back no larger than the quota it will stand beside: the kernel refuses more."""
    if not isinstance(quota, int) or quota == UNLIMITED or not isinstance(limit.value, int) or limit.value <= quota:
        return limit
    return to_original(limit.knob, quota, now, detail=f"it held {limit.value}, more than its quota")


def to_original(knob: Knob, value: Value, now: float, inherits: Knob | None = None, detail: str = "") -> Limit:
    """The limit that gives `knob` back; a CPU list counts by its CPUs."""
    row = row_of(knob)
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    unlimited = number == UNLIMITED and row.form not in (Form.CPUS, Form.SIGNED)
    terms = TermSum().add("unlimited" if unlimited else "released", number)
    decision = Decision(knob.subject, knob.file, number, row.unit, Reason.KNOB_RELEASED, terms.terms, "", now, detail)
    return Limit(knob, value, decision, inherits, gives_back=True)
