"""The Ledger: the one source of what is used, evicting, nominated and reserved, per node and per queue.

Every change is a transaction that returns what undoes it. Pods bound by other schedulers are charged like ours;
a deleting pod stays charged until it is gone, and is evicting meanwhile; a terminal one is not. Room that is kept for
a workload is a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from model.placement import PlacementState
from model.pod.affinity import NOWHERE
from model.queue import Cell
from model.workload import WorkloadId
from scheduler.core.ledger.account import Account
from scheduler.core.ledger.charge import Charge, ChargeChange, charge_of
from scheduler.core.ledger.claim import Claim, ClaimChange, ClaimKind
from scheduler.core.ledger.cpu_account import CpuAccount
from scheduler.core.ledger.pod_table import Slots
from scheduler.core.ledger.queue_book import QueueBook
from scheduler.core.ledger.residents import Residents
from scheduler.core.ledger.use_table import UseTable
from scheduler.core.snapshot.podclass import PodClass, PodTraits
from scheduler.core.snapshot.snapshot import ClusterSnapshot

__all__ = ["ChargeChange", "Charge", "Ledger", "Move", "charge_of"]

_SLACK = 8192
"""So many nodes and classes that are of no use any more are carried along."""


AnyChange: TypeAlias = ChargeChange | ClaimChange


class Move(msgspec.Struct, frozen=True, gc=False):
    """A pod that others' terms may see came to a node (`count` 1) or left it (−1)."""

    pod_traits: PodTraits
    node: str
    count: int


class Ledger:
    """Amounts in base units; `with_terms` is how many charged pods have terms about other pods.

    `evicting` is the part of what is used that terminating pods take, `cpus` says who has whole CPUs of his own. `book`
    has the queues where there is more than one, None where not. `keeping`: something is kept for somebody.
    """

    def __init__(self) -> None:
        self.with_terms = 0
        self.keeping = False
        self.book: QueueBook | None = None
        self.evicting = Account()
        self.cpus = CpuAccount()
        self._used = Account()
        self._claimed = {kind: Account() for kind in ClaimKind}
        self._claims: dict[ClaimKind, dict[WorkloadId, Claim]] = {kind: {} for kind in ClaimKind}
        self._sorted: dict[ClaimKind, tuple[Claim, ...]] = {}
        self._slots = Slots()
        self._followers: list[list[Move]] = []

    def __len__(self) -> int:
        return len(self._slots)

    def used(self, queue: str) -> Mapping[str, int]:
        """Resource → amount the queue's pods use, assumed ones included."""
        return self._used.of(queue)

    def open_book(self, book: QueueBook | None) -> None:
        """From now on queues count there, beginning with what is charged and nominated; None: no more."""
        self.book = book
        for account in self._counting:
            account.told = book.count if book is not None else None
        if book is not None:
            self.write_into(book)
            for (_, queue, _), group in _alike(tuple(self._slots.charges())):
                if group[0].counts:
                    book.came(queue, group)

    def write_into(self, book: QueueBook) -> None:
        """What is used and nominated at this moment."""
        for account in self._counting:
            book.begin({queue: account.cells(queue) for queue in account.queues})

    @property
    def _counting(self) -> tuple[Account, ...]:
        """The accounts that make a queue's share."""
        return (self._used, self._claimed[ClaimKind.NOMINATED], self._claimed[ClaimKind.ADMITTED])

    def counted(self, queue: str) -> dict[Cell, int]:
        """What makes the queue's share: what is used, nominated, and kept for admitted jobs."""
        used, *others = (account.cells(queue) for account in self._counting)
        for kept in others:
            for cell, amount in kept.items():
                used[cell] = used.get(cell, 0) + amount
        return used

    @property
    def flavored(self) -> tuple[Mapping[str, int], ...]:
        """Resource → amount of what is used, and of what is nominated, that counts to flavours of queues."""
        return tuple(account.flavored for account in self._counting)

    @property
    def nodes(self) -> UseTable:
        """Node → resource → amount that its pods use, assumed ones included."""
        return self._used.nodes

    def claimed(self, kind: ClaimKind) -> Account:
        """What is kept for workloads that wait."""
        return self._claimed[kind]

    def claim(self, kind: ClaimKind, subject: WorkloadId) -> Claim | None:
        """What is kept for a workload."""
        return self._claims[kind].get(subject)

    def claims(self, kind: ClaimKind) -> tuple[Claim, ...]:
        """All that is kept, in order of the workloads' identities."""
        found = self._sorted.get(kind)
        if found is None:
            known = self._claims[kind]
            found = self._sorted[kind] = tuple([known[subject] for subject in sorted(known)])
        return found

    def keep(self, claim: Claim) -> tuple[AnyChange, ...]:
        """Keep this room, in place of what the workload had by the same kind of claim; returns the undo."""
        return self.apply([ClaimChange(claim.kind, claim.subject, claim)])

    def give_up(self, kind: ClaimKind, subject: WorkloadId) -> tuple[AnyChange, ...]:
        """Nothing is kept for the workload any more by this kind; returns the undo, empty where nothing was."""
        return self.apply([ClaimChange(kind, subject, None)]) if subject in self._claims[kind] else ()

    def members_by_node(self, job: WorkloadId) -> Mapping[str, int]:
        """Node → how many members of a job are charged there."""
        return self._slots.members_by_node(job, self.nodes)

    def charge(self, uid: str) -> Charge | None:
        """How a pod is charged, None where it is not."""
        return self._slots.get(uid)

    def charges(self) -> Iterable[Charge]:
        """All charges, in no order that means anything."""
        return self._slots.charges()

    def assume(self, charges: Iterable[Charge]) -> tuple[ChargeChange, ...]:
        """Charge pods that are about to be bound, ASSUMED; returns the undo.

        Raises ValueError where one is charged already.
        """
        wanted = tuple(charges)
        uids = [charge.uid for charge in wanted]
        for uid in uids if self._slots.any_of(uids) else ():
            if self._slots.get(uid) is not None:
                raise ValueError(f"pod {uid} is charged already")
        if len(set(uids)) != len(uids):
            raise ValueError("a pod is assumed twice")
        self._assume(wanted)
        return tuple([ChargeChange(uid, None) for uid in reversed(uids)])

    def confirm(self, charge: Charge) -> tuple[ChargeChange, ...]:
        """The API server says where the pod is, whatever was assumed; returns the undo."""
        if charge.state is not PlacementState.BOUND:
            charge = msgspec.structs.replace(charge, state=PlacementState.BOUND)
        return () if self._slots.get(charge.uid) == charge else (self._charge(ChargeChange(charge.uid, charge)),)

    def forget(self, uid: str) -> tuple[ChargeChange, ...]:
        """The pod uses nothing any more; returns the undo, empty where it was not charged."""
        return (self._charge(ChargeChange(uid, None)),) if self._slots.get(uid) is not None else ()

    def apply(self, changes: Iterable[AnyChange]) -> tuple[AnyChange, ...]:
        """Make the changes in order; returns those that undo them, to be given to `apply` again."""
        undo = [self._claim(each) if isinstance(each, ClaimChange) else self._charge(each) for each in changes]
        return tuple(reversed(undo))

    def _charge(self, change: ChargeChange) -> ChargeChange:
        before = self._slots.pop(change.uid)
        if before is not None:
            self._used.remove(before.node, before.pod_class, before.governed_by, before.taken)
            if before.evicting:
                self.evicting.remove(before.node, before.pod_class, before.governed_by, before.taken)
            if self.book is not None:
                self.book.went(before)
            if before.cpus is not None:
                self.cpus.remove(before.node, before.uid)
            self._moved((before,), -1)
        if change.charge is not None:
            self._assume((change.charge,))
            if change.charge.evicting:
                now = change.charge
                self.evicting.add((now.node,), now.pod_class, now.governed_by, now.taken)
        return ChargeChange(change.uid, before)

    def _claim(self, change: ClaimChange) -> ClaimChange:
        account, known = self._claimed[change.kind], self._claims[change.kind]
        self._sorted.pop(change.kind, None)
        before = known.pop(change.subject, None)
        for pod in before.pods if before is not None else ():
            account.remove(pod.node, pod.pod_class, before.queue if before else "")
        if not known:
            account.nodes = UseTable()  # without the nodes and classes of long ago
        if change.claim is not None:
            known[change.subject] = change.claim
            for pod in change.claim.pods:
                account.add((pod.node,), pod.pod_class, change.claim.queue)
        self.keeping = any(self._claims.values())
        return ClaimChange(change.kind, change.subject, before)

    def residents(self, snapshot: ClusterSnapshot) -> Residents:
        """All charged pods as arrays; see there."""
        return self._slots.residents(snapshot, self.nodes)

    def follow(self) -> list[Move]:
        """A list that tells from here on who came and went; whoever asked for it clears what it has read."""
        self._followers.append([])
        return self._followers[-1]

    def unfollow(self, moves: list[Move]) -> None:
        """Tell this list nothing more."""
        self._followers = [each for each in self._followers if each is not moves]

    def _assume(self, charges: Sequence[Charge]) -> None:
        if max(self.nodes.classes, self.nodes.height) > _SLACK + 4 * len(self._slots):
            self.restart_table()
        self._slots.put_all(charges)
        for (pod_class, queue, taken), group in _alike(charges):
            self._used.add([charge.node for charge in group], pod_class, queue, taken)
            if self.book is not None and group[0].counts:
                self.book.came(queue, group)
        for charge in charges:
            if charge.cpus is not None:
                self.cpus.add(charge.node, charge.uid, charge.cpus)
        self._moved(charges, 1)

    def restart_table(self) -> None:
        """Without the nodes and classes of long ago."""
        self._used.nodes, self.evicting.nodes = UseTable(), UseTable()
        self._slots.refresh()
        for charge in self._slots.charges():
            self.nodes.add((charge.node,), charge.pod_class)
            if charge.evicting:
                self.evicting.nodes.add((charge.node,), charge.pod_class)
        for kind, claims in self._claims.items():
            self._claimed[kind].nodes = UseTable()
            for pod in (pod for claim in claims.values() for pod in claim.pods):
                self._claimed[kind].nodes.add((pod.node,), pod.pod_class)

    def _moved(self, charges: Sequence[Charge], count: int) -> None:
        for charge in charges:
            if charge.pod_traits.affinity is not NOWHERE and charge.pod_traits.affinity != NOWHERE:
                self.with_terms += count
        for moves in self._followers:
            moves.extend(Move(charge.pod_traits, charge.node, count) for charge in charges)


_Kind: TypeAlias = tuple[PodClass, str, PodClass | None]
"""The class, the queue, and what of the class counts to it."""


def _alike(charges: Sequence[Charge]) -> Iterable[tuple[_Kind, Sequence[Charge]]]:
    """Charges by what they take of whom; mostly they are all alike."""
    first = charges[0] if charges else None
    queues = [charge.governed_by for charge in charges]
    kinds = {(id(charge.pod_class), id(charge.taken)) for charge in charges}
    if first is not None and len(kinds) == 1 and len(set(queues)) == 1:
        return [((first.pod_class, queues[0], first.taken), charges)]
    groups: dict[_Kind, list[Charge]] = {}
    for charge, queue in zip(charges, queues, strict=True):
        groups.setdefault((charge.pod_class, queue, charge.taken), []).append(charge)
    return groups.items()
