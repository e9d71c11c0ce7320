"""Fair shares: what each queue of the tree is due of each cell, by hierarchical water-filling.

A parent's share is divided among its children: first what they keep for themselves even where they are idle (their
guarantee), then up to what they have of their own (nominal), then by weight; no queue gets more than it may have, nor
more than is demanded below it, except for what it keeps. What one cannot use goes to its siblings. Whole units by
largest remainder, ties by name. The dominant share is DRF's (Ghodsi et al., NSDI 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, TypeVar

import msgspec

from model.queue import DEFAULT_QUEUE, NO_FLAVOR, ROOT_QUEUE, Cell, QuotaCell
from scheduler.core.queues.tree import QueueTree
from scheduler.core.queues.water_fill import Claimant, fill

Amounts: TypeAlias = Mapping[Cell, int]
"""Cell → amount in base units."""
Use: TypeAlias = Mapping[str, Amounts]
"""Queue → cell → amount, that of all queues below it included."""
Shares: TypeAlias = Use
"""Queue → cell → fair share, the root's included."""
ShareKey: TypeAlias = int | Fraction
"""What orders queues as their weighted dominant shares do; those of one moment are all of one kind."""

NOTHING_SAID = QuotaCell()
"""The quota of a queue in a cell that it does not name."""
_Key = TypeVar("_Key", str, Cell)
_Amount = TypeVar("_Amount", int, Fraction)


class QuotaMode(StrEnum):
    """PROPORTION: by weight alone, what queues have of their own (nominal) is ignored. CAPACITY: that first."""

    PROPORTION = "proportion"
    CAPACITY = "capacity"


class GuaranteeRule(StrEnum):
    """ADDED: the part by weight comes on top of the guarantee. FLOOR: the guarantee is the least it may be."""

    ADDED = "added"
    FLOOR = "floor"


class ShareRules(msgspec.Struct, frozen=True):
    """How shares are computed."""

    mode: QuotaMode = QuotaMode.CAPACITY
    guarantee: GuaranteeRule = GuaranteeRule.ADDED

    def nominal(self, said: QuotaCell) -> int | None:
        """What a queue has of its own by its quota, None where that goes by weight."""
        return said.nominal if self.mode is QuotaMode.CAPACITY else None

    def borrowing_ceiling(self, said: QuotaCell) -> int | None:
        """Its own and what it may borrow, None where that is not bounded."""
        nominal = self.nominal(said)
        return None if nominal is None or said.borrowing_limit is None else nominal + said.borrowing_limit

    def ceiling(self, said: QuotaCell) -> int | None:
        """The most it may have by its own quota, None where that is not bounded."""
        bounds = [bound for bound in (said.maximum, self.borrowing_ceiling(said)) if bound is not None]
        return min(bounds, default=None)

    def kept(self, said: QuotaCell) -> int:
        """What it keeps for itself even where it is idle: its guarantee, or what it does not lend."""
        nominal = self.nominal(said)
        unlent = nominal - said.lending_limit if nominal is not None and said.lending_limit is not None else 0
        kept = max(said.guaranteed, unlent)
        return kept if said.maximum is None else min(kept, said.maximum)


PLAIN_RULES = ShareRules()


class Share(msgspec.Struct, frozen=True):
    """A queue's dominant share, 0 to 1 of the cluster before division by its weight, and the resource that makes it."""

    value: Fraction = Fraction(0)
    resource: str = ""


def said(tree: QueueTree, queue: str, cell: Cell) -> QuotaCell:
    """What the queue says of the cell."""
    known = tree.queues.get(queue)
    return known.cells.get(cell, NOTHING_SAID) if known is not None else NOTHING_SAID


def guarantees(tree: QueueTree, cell: Cell) -> dict[str, int]:
    """What each queue is guaranteed: its own word or the sum of its children's, if that is more; never above its
    maximum. Queues without a guarantee are left out.
    """
    return _with_children(tree, cell, lambda quota: quota.guaranteed)


def kept(tree: QueueTree, cell: Cell, rules: ShareRules = PLAIN_RULES) -> dict[str, int]:
    """What each queue keeps for itself even where it is idle, as `guarantees`: those, and what it does not lend."""
    return _with_children(tree, cell, rules.kept)


def within(tree: QueueTree, keeping: Mapping[str, int], capacity: int | None) -> dict[str, int]:
    """Of what each queue keeps (`kept`) what it can keep: where that is more, at the top, than there is (None: without
    bound), or below a queue than this one keeps, each has its part of that, rounded down.
    """
    found: dict[str, int] = {}
    for parent in (ROOT_QUEUE, *tree.top_down):
        names = [name for name in tree.children.get(parent, ()) if name in keeping]
        together, most = sum(keeping[name] for name in names), found.get(parent, 0)
        most = (together if capacity is None else capacity) if parent == ROOT_QUEUE else most
        for name in names:
            found[name] = keeping[name] if together <= most else keeping[name] * most // together
    return found


def _with_children(tree: QueueTree, cell: Cell, own: Callable[[QuotaCell], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    below: dict[str, int] = {}
    for name in reversed(tree.top_down):
        quota = tree.queues[name].cells.get(cell, NOTHING_SAID)
        amount = max(own(quota), below.get(name, 0))
        if quota.maximum is not None:
            amount = min(amount, quota.maximum)
        if amount:
            found[name] = amount
            parent = tree.parent(name)
            below[parent] = below.get(parent, 0) + amount
    return found


def subtree_demand(tree: QueueTree, demand: Use, cell: Cell, rules: ShareRules = PLAIN_RULES) -> dict[str, int]:
    """What is demanded in and below each queue, each clipped by its ceiling; `demand` is of each queue's own work.

    Queues without demand are left out; the root's is the sum of all.
    """
    total: dict[str, int] = {}
    for name in reversed(tree.top_down):
        amount = total.get(name, 0) + demand.get(name, {}).get(cell, 0)
        if not amount:
            continue
        ceiling = rules.ceiling(tree.queues[name].cells.get(cell, NOTHING_SAID))
        if ceiling is not None:
            amount = min(amount, ceiling)
        total[name] = amount
        parent = tree.parent(name)
        total[parent] = total.get(parent, 0) + amount
    return total


def fair_shares(tree: QueueTree, capacity: Amounts, demand: Use, rules: ShareRules = PLAIN_RULES) -> Shares:
    """The share of every queue, the root's included, in every cell that the cluster, a queue or a demand names.

    `demand` is what each queue's own work uses, has nominated and waits for, without that of queues below it. A cell
    that `capacity` does not have is not bounded: everybody's share is then what is demanded.
    """
    shares: dict[str, dict[Cell, int]] = {name: {} for name in (ROOT_QUEUE, *tree.top_down)}
    for cell in known_cells(tree, capacity, demand.values()):
        for name, amount in cell_shares(tree, capacity.get(cell), demand, cell, rules).items():
            shares[name][cell] = amount
    return shares


def known_cells(tree: QueueTree, capacity: Amounts, others: Iterable[Amounts]) -> tuple[Cell, ...]:
    """The cells of the cluster, of the queues' quotas and of these amounts, sorted."""
    cells = set(capacity)
    cells.update(*(queue.cells for queue in tree.queues.values()), *others)
    return tuple(sorted(cells))


def cell_shares(
    tree: QueueTree, capacity: int | None, demand: Use, cell: Cell, rules: ShareRules = PLAIN_RULES
) -> dict[str, int]:
    """`fair_shares` of one cell, for every queue and the root; `capacity` None: not bounded."""
    bases, demands = kept(tree, cell, rules), subtree_demand(tree, demand, cell, rules)
    shares = dict.fromkeys((ROOT_QUEUE, *tree.top_down), 0)
    shares[ROOT_QUEUE] = _all_of_them(tree, bases, demands) if capacity is None else capacity
    for parent in (ROOT_QUEUE, *tree.top_down):
        names = [name for name in tree.children.get(parent, ()) if name in bases or name in demands]
        if not names or not shares[parent]:
            continue
        terms = [_claim(tree, name, cell, bases.get(name, 0), demands.get(name, 0), rules) for name in names]
        for name, amount in zip(names, _divided(shares[parent], terms, rules), strict=True):
            shares[name] = amount
    return shares


class _Terms(msgspec.Struct, frozen=True, gc=False):
    """`middle` is what there is before weights count, `missing` how much its own is above the base."""

    base: int
    middle: int
    missing: int
    cap: int
    weight: int


def _claim(tree: QueueTree, name: str, cell: Cell, base: int, demand: int, rules: ShareRules) -> _Terms:
    cap = max(base, demand)
    queue = tree.queues[name]
    quota = queue.cells.get(cell, NOTHING_SAID)
    nominal = rules.nominal(quota)
    own = base if nominal is None else max(base, nominal)
    weight = queue.weight if quota.weight is None else quota.weight
    return _Terms(base, min(own, cap), own - base, cap, weight)


def _divided(amount: int, terms: Sequence[_Terms], rules: ShareRules) -> tuple[int, ...]:
    """First the bases, then up to the middles in proportion to what of its own one lacks, then by weight."""
    if sum(one.middle for one in terms) > amount:
        return fill(amount, [Claimant(one.base, one.middle, one.missing) for one in terms])
    claimants = [Claimant(one.middle, one.cap, one.weight) for one in terms]
    return fill(amount, claimants, added=rules.guarantee is GuaranteeRule.ADDED)


def _all_of_them(tree: QueueTree, bases: Mapping[str, int], demands: Mapping[str, int]) -> int:
    return sum(max(bases.get(name, 0), demands.get(name, 0)) for name in tree.children[ROOT_QUEUE])


def over_committed(tree: QueueTree, shares: Shares) -> tuple[tuple[str, Cell], ...]:
    """Queues, the root included, whose children are guaranteed more of a cell than the queue's share, sorted."""
    found = []
    for cell in sorted(shares.get(ROOT_QUEUE, {})):
        promised: dict[str, int] = {}
        for name, amount in guarantees(tree, cell).items():
            parent = tree.parent(name)
            promised[parent] = promised.get(parent, 0) + amount
        found += [(name, cell) for name, amount in promised.items() if amount > shares[name].get(cell, 0)]
    return tuple(sorted(found))


def entitled(guaranteed: int, nominal: int | None, share: int) -> int:
    """What nobody may take back from a queue of this share."""
    return share if nominal is None else max(guaranteed, min(nominal, share))


def entitlements(
    tree: QueueTree, shares: Mapping[str, int], cell: Cell, rules: ShareRules = PLAIN_RULES
) -> dict[str, int]:
    """What nobody may take back from each queue and the root; `shares` are those of `cell_shares`.

    Where a queue's share is more than it is entitled to, it borrows the rest of it. Its children divide among
    themselves, as they divide shares, what it is entitled to and not what it borrows: else they were entitled to more
    than their parent is, and none of them could be made to give back what it may lose.
    """
    bases, promised = kept(tree, cell, rules), guarantees(tree, cell)
    found = {ROOT_QUEUE: shares[ROOT_QUEUE]}
    for parent in (ROOT_QUEUE, *tree.top_down):
        names = tree.children.get(parent, ())
        parts: Sequence[int] = [shares[name] for name in names]
        if found[parent] < shares[parent]:
            terms = [_claim(tree, name, cell, bases.get(name, 0), shares[name], rules) for name in names]
            parts = _divided(found[parent], terms, rules)
        for name, part in zip(names, parts, strict=True):
            found[name] = entitled(promised.get(name, 0), rules.nominal(said(tree, name, cell)), part)
    return found


def brought_by_queues(tree: QueueTree) -> dict[Cell, int]:
    """The capacity where no node is known: what the top queues bring (nominal, else maximum, else what those below
    bring, else guaranteed). A cell that one of them says nothing about is not bounded, so it is left out; of a flavour
    a queue that does not name it has nothing.
    """
    tops = [name for name in tree.children[ROOT_QUEUE] if not (tree.implicit and name == DEFAULT_QUEUE)]
    by_flavor = {name for name in tops if any(flavor != NO_FLAVOR for flavor, _ in tree.queues[name].cells)}
    found: dict[Cell, list[int | None]] = {}
    for cell in known_cells(tree, {}, ()):
        if cell[0] == NO_FLAVOR:
            found[cell] = [_brought(tree, name, cell) for name in tops if name not in by_flavor]
        else:
            found[cell] = [_brought(tree, name, cell) or 0 for name in tops]
    return {
        cell: sum(amount for amount in amounts if amount is not None)
        for cell, amounts in found.items()
        if None not in amounts
    }


def _brought(tree: QueueTree, name: str, cell: Cell) -> int | None:
    own = tree.queues[name].cells.get(cell)
    if own is not None and own.nominal is not None:
        return own.nominal
    if own is not None and own.maximum is not None:
        return own.maximum
    below = [_brought(tree, child, cell) for child in tree.children.get(name, ())]
    if below and None not in below:
        return max(sum(amount or 0 for amount in below), own.guaranteed if own is not None else 0)
    return own.guaranteed if own is not None else None


def dominant_share(used: Mapping[_Key, _Amount], totals: Mapping[_Key, int], weight: int = 1) -> Share:
    """The largest share of any resource, divided by `weight`; a resource the cluster lacks does not count.

    Keys are resources or cells; of a cell its resource is told. A weight below 1 counts as 1: nobody writes one.
    """
    best: int | Fraction = 0
    over, dominant = 1, ""
    for key in sorted(used):
        amount, total = used[key], totals.get(key, 0)
        if total > 0 and amount * over > best * total:
            best, over, dominant = amount, total, key if isinstance(key, str) else key[1]
    return Share(Fraction(best, over * max(1, weight)), dominant) if dominant else Share()
