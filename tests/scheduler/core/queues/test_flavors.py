"""Which flavours pod sets get by a queue's quota, as Kueue's rules for its ClusterQueues say."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from model.flavor.assignment import FlavorMode, FlavorRequest
from model.flavor.resource_flavor import ResourceFlavor
from model.node import Taint
from model.pod.affinity import NodeTerm
from model.pod.spec import Toleration, TolerationOperator
from model.queue import (
    FlavorGroup,
    FlavorPreference,
    FlavorStop,
    Fungibility,
    Queue,
    QueuePreemption,
    QuotaCell,
    VictimPolicy,
)
from model.selector import Operator, Requirement
from scheduler.core.queues.flavors import FlavorQuestion, assign
from scheduler.core.queues.headroom import Quota
from scheduler.core.queues.tree import tree_of

GI = 1 << 30
GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
TOLERATES = (Toleration("nvidia.com/gpu", TolerationOperator.EXISTS),)
FLAVORS = {
    "a100": ResourceFlavor("a100", {PRODUCT: "A100"}, tolerations=TOLERATES),
    "v100": ResourceFlavor("v100", {PRODUCT: "V100"}, tolerations=TOLERATES),
    "tainted": ResourceFlavor("tainted", {PRODUCT: "H100"}, taints=(Taint("team", "x"),)),
}
A100 = {"cpu": 256_000, "memory": 2048 * GI, GPU: 64}
V100 = {"cpu": 128_000, "memory": 1024 * GI, GPU: 32}
LIMITED = {("a100", GPU): 16}


def cells(
    borrowing: Mapping[tuple[str, str], int] = LIMITED, **of: Mapping[str, int]
) -> dict[tuple[str, str], QuotaCell]:
    return {
        (flavor, name): QuotaCell(nominal=amount, borrowing_limit=borrowing.get((flavor, name)))
        for flavor, amounts in of.items()
        for name, amount in amounts.items()
    }


GROUP = FlavorGroup(("cpu", "memory", GPU), ("a100", "v100"))
TRAINING = Queue(
    "training",
    "ai-platform",
    cells=cells(a100=A100, v100=V100),
    flavor_groups=(GROUP,),
    preemption=QueuePreemption(within=VictimPolicy.LOWER, reclaim=VictimPolicy.ANY),
)
ALONE = (
    Queue(
        "ai-platform",
        cells={cell: QuotaCell(nominal=of.nominal, maximum=of.nominal) for cell, of in TRAINING.cells.items()},
    ),
    TRAINING,
)
OTHER = Queue("other", "ai-platform", cells=cells(a100=A100), flavor_groups=(FlavorGroup(GROUP.resources, ("a100",)),))
TWO = (
    Queue(
        "ai-platform",
        cells={
            cell: QuotaCell(nominal=total, maximum=total)
            for cell, of in TRAINING.cells.items()
            for total in [(of.nominal or 0) * (2 if cell[0] == "a100" else 1)]
        },
    ),
    TRAINING,
    OTHER,
)


def big(count: int, name: str = "main", **more: object) -> FlavorRequest:
    request = {"cpu": 32_000, "memory": 256 * GI, GPU: 8, "pods": 1}
    return msgspec.structs.replace(FlavorRequest(name, count, request), **more)


def asked(
    queues: tuple[Queue, ...] = ALONE, used: Mapping[str, Mapping[str, int]] | None = None, **more: object
) -> FlavorQuestion:
    """`used`: queue → flavour → GPUs, each with 4 CPUs and 32 GiB."""
    quota = Quota(tree_of(queues), {}, {}, {})
    for queue, amounts in (used or {}).items():
        for flavor, gpus in amounts.items():
            per = {"cpu": 4000, "memory": 32 * GI, GPU: 1}
            quota.charge(queue, {(flavor, name): gpus * amount for name, amount in per.items()})
    return msgspec.structs.replace(FlavorQuestion(quota, "training", FLAVORS), **more)


def with_rules(**rules: object) -> tuple[Queue, ...]:
    return (ALONE[0], msgspec.structs.replace(TRAINING, fungibility=Fungibility(**rules)))


BORROWS = {"a100": 64}
CASES: dict[str, tuple[FlavorQuestion, FlavorRequest, str, FlavorMode, int]] = {
    "the first flavour": (asked(), big(8), "a100", FlavorMode.FIT, 0),
    "the second where the first is full, since the default tries on before it evicts": (
        asked(used={"training": {"a100": 64}}),
        big(4),
        "v100",
        FlavorMode.FIT,
        0,
    ),
    "a queue alone in its cohort has nobody to borrow from": (asked(), big(9), "", FlavorMode.NO_FIT, 0),
    "borrowed, which ends the search by default": (
        asked(TWO, used={"training": BORROWS}),
        big(2),
        "a100",
        FlavorMode.FIT,
        1,
    ),
    "not borrowed beyond the limit of 16": (asked(TWO), big(11), "", FlavorMode.NO_FIT, 0),
    "not borrowed where the next flavour is free and the queue tries on": (
        asked(
            (*TWO[:1], msgspec.structs.replace(TRAINING, fungibility=Fungibility(FlavorStop.NEXT)), OTHER),
            used={"training": BORROWS},
        ),
        big(2),
        "v100",
        FlavorMode.FIT,
        0,
    ),
    "an eviction where the queue stops at one": (
        asked(with_rules(when_can_preempt=FlavorStop.STOP), used={"training": {"a100": 64}}),
        big(1),
        "a100",
        FlavorMode.PREEMPT,
        0,
    ),
    "what relatives borrow of its own is reclaimed": (
        asked(TWO, used={"other": {"a100": 120}, "training": {"v100": 32}}),
        big(8),
        "a100",
        FlavorMode.RECLAIM,
        0,
    ),
    "by its node selector": (asked(), big(1, node_selector={PRODUCT: "V100", "zone": "b"}), "v100", FlavorMode.FIT, 0),
    "by its node affinity": (
        asked(),
        big(1, node_terms=(NodeTerm((Requirement(PRODUCT, Operator.NOT_IN, ("A100",)),)),)),
        "v100",
        FlavorMode.FIT,
        0,
    ),
    "one that was tried in vain is passed": (asked(passed=("a100",)), big(1), "v100", FlavorMode.FIT, 0),
    "where both need an eviction the first counts": (
        asked(used={"training": {"a100": 64, "v100": 32}}),
        big(1),
        "a100",
        FlavorMode.PREEMPT,
        0,
    ),
    "borrowing before an eviction": (
        asked(
            (
                *TWO[:1],
                msgspec.structs.replace(TRAINING, fungibility=Fungibility(FlavorStop.NEXT)),
                OTHER,
            ),
            used={"training": {"a100": 64, "v100": 32}},
        ),
        big(1),
        "a100",
        FlavorMode.FIT,
        1,
    ),
    "an eviction before borrowing where the queue prefers that": (
        asked(
            (
                *TWO[:1],
                msgspec.structs.replace(
                    TRAINING, fungibility=Fungibility(FlavorStop.NEXT, FlavorStop.NEXT, FlavorPreference.PREEMPTION)
                ),
                OTHER,
            ),
            used={"training": {"a100": 64, "v100": 32}},
        ),
        big(1),
        "v100",
        FlavorMode.PREEMPT,
        0,
    ),
}


@pytest.mark.parametrize(("question", "pods", "flavor", "mode", "borrowing"), CASES.values(), ids=CASES)
def test_flavor(question: FlavorQuestion, pods: FlavorRequest, flavor: str, mode: FlavorMode, borrowing: int) -> None:
    found = assign(question, (pods,))
    assert found.mode is mode, found.reason
    assert found.borrowing == borrowing
    assert set(found.pod_sets[0].flavors.values()) == ({flavor} if flavor else set())


def test_all_resources_of_a_group_come_from_one_flavour() -> None:
    """CPU alone would fit on the first flavour, and goes with the GPUs to the second."""
    found = assign(asked(used={"training": {"a100": 60}}), (big(1),))
    assert found.pod_sets[0].flavors == {"cpu": "v100", "memory": "v100", GPU: "v100"}
    assert found.amounts == {("v100", "cpu"): 32_000, ("v100", "memory"): 256 * GI, ("v100", GPU): 8}


def test_eight_of_eight_fill_the_first_flavour_exactly() -> None:
    """S69 (f): 64 GPUs, 256 CPUs, 2 TiB."""
    assert assign(asked(), (big(8),)).amounts == {("a100", name): amount for name, amount in A100.items()}


def test_pod_sets_share_what_is_left() -> None:
    found = assign(asked(), (big(6, "workers"), big(3, "more")))
    assert [set(each.flavors.values()) for each in found.pod_sets] == [{"a100"}, {"v100"}]


REASONS: dict[str, tuple[FlavorQuestion, FlavorRequest, str]] = {
    "beyond what there may ever be": (
        asked(),
        big(9),
        "insufficient quota for cpu in flavor a100, 288 is more than the most there may be (256)",
    ),
    "a resource that the queue does not know": (
        asked(),
        FlavorRequest("main", 1, {"amd.com/gpu": 1}),
        "resource amd.com/gpu is in no resource group of queue training",
    ),
    "what is in use": (
        asked(used={"training": {"a100": 64, "v100": 32}}),
        big(1),
        "insufficient unused quota for nvidia.com/gpu in flavor v100, 8 more needed",
    ),
    "a flavour that nobody defined": (asked(flavors={}), big(1), "flavor a100 does not exist"),
    "no flavour that its selector allows": (
        asked(),
        big(1, node_selector={PRODUCT: "H100"}),
        "flavor a100 doesn't match node affinity",
    ),
    "a taint": (
        asked(
            (*ALONE[:1], msgspec.structs.replace(TRAINING, flavor_groups=(FlavorGroup(GROUP.resources, ("tainted",)),)))
        ),
        big(1),
        "untolerated taint team in flavor tainted",
    ),
}


@pytest.mark.parametrize(("question", "pods", "part"), REASONS.values(), ids=REASONS)
def test_reason(question: FlavorQuestion, pods: FlavorRequest, part: str) -> None:
    assert part in assign(question, (pods,)).reason
