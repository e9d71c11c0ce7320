"""The question that preemption answers, put into arrays once."""

from __future__ import annotations

import msgspec
import numpy as np

from scheduler.core.filters import fit
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.ledger.residents import Flag, Residents
from scheduler.core.load.limit import load_room
from scheduler.core.picture.podclass import ALONE
from scheduler.core.picture.snapshot import Amounts
from scheduler.core.placement.working_snapshot import Scene
from scheduler.core.preemption.capacity import Ask, Field
from scheduler.core.preemption.costs import Stakes
from scheduler.core.preemption.demand import columns_of, needed_only, request_of
from scheduler.core.preemption.facts import PreemptionFacts, Preemptor
from scheduler.core.preemption.legal import Legality, legality
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.preemption.terminating import Heeds, vacate
from scheduler.core.preemption.trial import Trial
from scheduler.core.preemption.victims import Herd, herd_of


class Inquiry(msgspec.Struct, frozen=True, eq=False):
    """`trial` is the last word; `field` is its arithmetic, which is exact where amounts alone decide (`plain`).

    `exact`: what it does not find there is not there. `coming` is whether pods on their way out free something.
    """

    demand: Candidate
    legal: Legality
    stakes: Stakes
    field: Field
    trial: Trial
    plain: bool
    exact: bool
    coming: bool


def inquire(
    scene: Scene,
    candidate: Candidate,
    residents: Residents,
    facts: PreemptionFacts,
    limits: tuple[PreemptionPolicySettings, float],
) -> Inquiry:
    """`limits` are the settings and the time."""
    policy, now = limits
    snapshot = scene.snapshot
    demand = needed_only(snapshot, candidate)
    columns = columns_of(snapshot, demand)
    legal = legality(residents, _preemptor(candidate, facts), facts, policy, now)
    herd = herd_of(residents, legal.mask, columns, facts.gangs, len(snapshot.names))
    legal = _with_stuck(legal, int(np.count_nonzero(legal.mask)) - len(herd))
    leaving = np.flatnonzero((residents.rows >= 0) & ((residents.flags & Flag.DELETING) != 0))
    later = scene.what_if()
    heeds = Heeds(later, demand)
    vacate(later, residents, leaving, heeds)
    stakes = Stakes(herd, residents, facts, now)
    field = _field(later, demand, columns, herd)
    trial = Trial(later, demand, residents, stakes, heeds)
    plain = _plain(scene, demand)
    exact = plain and len(field.asks) == 1 and not demand.workload.topology
    return Inquiry(demand, legal, stakes, field, trial, plain, exact, len(leaving) > 0)


def _with_stuck(legal: Legality, number: int) -> Legality:
    if not number:
        return legal
    spared = (*legal.spared, ("in a gang of which others stay", number))
    return msgspec.structs.replace(legal, spared=spared)


def _preemptor(candidate: Candidate, facts: PreemptionFacts) -> Preemptor:
    workload, pods = candidate.workload, facts.pods
    below_prod = any(pods[uid].below_prod for uid in candidate.uids if uid in pods)
    policy, created = workload.preemption_policy, workload.created_seconds
    return Preemptor(candidate.subject, workload.priority, policy, created, below_prod)


def _field(scene: Scene, demand: Candidate, columns: list[int], herd: Herd) -> Field:
    snapshot = scene.snapshot
    free = scene.free_for(demand.standing)
    emptied = free.copy()
    emptied[:, columns] += herd.freed(np.arange(len(herd)), len(free))
    asks = []
    for pod_class, pods in zip(demand.classes, demand.workload.pod_sets, strict=True):
        most = fit.counts(snapshot, emptied, pod_class)
        limit = load_room(scene.background.load, snapshot, pod_class)
        if limit is not None:
            most = np.where(limit.reason_of < 0, np.minimum(most, limit.most), 0)
        asks.append(Ask(request_of(snapshot, columns, pod_class), most, pods.count))
    totals = np.maximum(snapshot.allocatable[:, columns].sum(axis=0, dtype=np.float64), 1.0)
    asks.sort(key=lambda ask: float((ask.request / totals).max()), reverse=True)
    return Field(tuple(asks), np.ascontiguousarray(free[:, columns]))


def _plain(scene: Scene, demand: Candidate) -> bool:
    """Whether other pods matter to the members by the room they take alone."""
    for pod_class, kins in zip(demand.classes, demand.kins, strict=True):
        if scene.outlook(pod_class, kins[0], demand.standing).obstacles is None:
            continue
        if pod_class.company != ALONE or any(scene.crowd.objections(kin) for kin in set(kins)):
            return False
    return True


def domains(scene: Scene, inquiry: Inquiry) -> list[Amounts]:
    """Rows of each domain that all members must be in together, by value of its label; one of all rows without any.

    Wider levels hold where the narrowest does; a domain that could not hold the members, whoever goes, is left out.
    """
    required = [level for level in inquiry.demand.workload.topology if level.required]
    if not required:
        return [np.arange(len(scene.snapshot.names))]
    rows_of: dict[str, list[int]] = {}
    for row, labels in enumerate(scene.snapshot.traits.labels):
        if required[-1].key in labels:
            rows_of.setdefault(labels[required[-1].key], []).append(row)
    found = [np.array(rows_of[value], np.int64) for value in sorted(rows_of)]
    return [rows for rows in found if all(int(ask.most[rows].sum()) >= ask.want for ask in inquiry.field.asks)]
