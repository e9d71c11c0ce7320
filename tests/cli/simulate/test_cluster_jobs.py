"""What became of jobs, in which queue, and who lost pods to whom."""

from __future__ import annotations

import pytest

from tests.cli.simulate.clusters import Object, decided, node, pod
from tests.cli.simulate.test_cluster_given import GPU, group, queue
from view.simulated_queues import JobOut, PreemptionOut, ServedOut, WorkloadOut


def held() -> tuple[Object, ...]:
    """Queues a and b of eight GPUs each; a has twelve in two jobs, b wants its own."""
    quota = {"deserved": {GPU: "8"}, "capability": {GPU: "16"}}
    old = [group(name, "a", 6, 1, phase="Running") for name in ("old-1", "old-2")]
    return (queue("a", **quota), queue("b", **quota), *old, group("new", "b", 8))


def test_what_is_taken_back() -> None:
    """One job of the queue that borrowed; the other waits for it to go."""
    found = decided(*held())
    assert found.preemptions == (PreemptionOut("default/old-1", "a", "default/new", "Reclaiming"),)
    assert found.workloads == (WorkloadOut("default/new", "b", "preempting", 2, {}, "QuotaExhausted"),)
    assert found.jobs == (
        JobOut("default/new", "b", "Preempting", "QuotaExhausted"),
        JobOut("default/old-1", "a", "Evicted", "PreemptionByScheduler"),
        JobOut("default/old-2", "a", "Running", ""),
    )
    a, b = found.queues[-2:]
    assert (a.used[GPU], a.borrowed[GPU], b.used[GPU], b.nominated[GPU]) == (12, 4, 0, 8)


def test_until_settled() -> None:
    """The victim is gone, and both queues have what is theirs."""
    found = decided(*held(), settle=True)
    assert [(row.name, row.outcome) for row in found.workloads] == [("default/new", "admitted")]
    assert {row.name: row.used[GPU] for row in found.queues} == {"a": 6, "b": 8}


def test_preemption_inside_a_queue() -> None:
    """By priority, and told as that."""
    low = pod("low", "4", nodeName="n1", priority=1)
    found = decided(node(), low, pod("high", "4", priority=10))
    assert found.preemptions == (PreemptionOut("default/low", "default", "default/high", "Preempting"),)


def test_the_order_in_which_queues_are_served() -> None:
    """By weighted dominant share: whoever has less comes first, so that two equal queues take turns."""
    pods = [pod(f"{of}{i}", "1", labels={"volcano.sh/queue-name": of}) for of in "ab" for i in range(2)]
    found = decided(node(cpu="4"), queue("a"), queue("b"), *pods)
    assert found.served == tuple(
        ServedOut(1, of, f"default/{name}") for of, name in (("a", "a0"), ("b", "b0"), ("a", "a1"), ("b", "b1"))
    )


def test_one_head_a_queue_and_cycle() -> None:
    """As many cycles as are asked for; what they do not come to waits."""
    pods = [pod(f"{of}{i}", "1", labels={"volcano.sh/queue-name": of}) for of in "ab" for i in range(3)]
    objects = (node(cpu="6"), queue("a"), queue("b"), *pods)
    assert [row.pod for row in decided(*objects, cycles=1).placements] == ["default/a0", "default/b0"]
    found = decided(*objects, cycles=2)
    assert [(row.cycle, row.queue) for row in found.served] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    assert [(row.name, row.outcome) for row in found.workloads if row.outcome == "pending"] == [
        ("default/a2", "pending"),
        ("default/b2", "pending"),
    ]


def test_the_shares_of_the_dominant_resource_are_equal() -> None:
    """The example of the DRF paper: of 9 CPUs and 18 GiB three tasks of 1 and 4, two of 3 and 1 (NSDI 2011)."""
    tasks = {"a": {"cpu": "1", "memory": "4Gi"}, "b": {"cpu": "3", "memory": "1Gi"}}
    pods = []
    for of, requests in tasks.items():
        found = pod(of, labels={"volcano.sh/queue-name": of}, resources={"requests": requests})
        found["metadata"]["annotations"] = {"sublet.dev/count": "10"}
        pods.append(found)
    machine = node(cpu="9")
    machine["status"]["allocatable"]["memory"] = "18Gi"
    outcome = decided(machine, queue("a"), queue("b"), *pods)
    assert {row.queue: row.count for row in outcome.workloads if row.outcome == "admitted"} == {"a": 3, "b": 2}
    assert {row.name: row.dominant_share for row in outcome.queues} == {"a": 0.666667, "b": 0.666667}


def test_shares_are_exact() -> None:
    """A third of ten devices is told as that, though each is given to one; what is borrowed is what is lent."""
    machine = node(cpu="30")
    machine["status"]["allocatable"][GPU] = "10"
    pods = []
    for of in "abc":
        found = pod(of, labels={"volcano.sh/queue-name": of}, resources={"requests": {GPU: "1"}, "limits": {GPU: "1"}})
        found["metadata"]["annotations"] = {"sublet.dev/count": "9"}
        pods.append(found)
    queues = {row.name: row for row in decided(machine, *map(queue, "abc"), *pods).queues}
    assert {name: row.fair_share[GPU] for name, row in queues.items()} == dict.fromkeys("abc", 3.333333)
    assert {name: row.used[GPU] for name, row in queues.items()} == {"a": 4, "b": 3, "c": 3}
    assert queues["a"].borrowed[GPU] == 0.666667
    assert sum(row.lent[GPU] for row in queues.values()) == pytest.approx(0.666667, abs=2e-6)
