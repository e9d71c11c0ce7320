"""Deployments: one look at a time, without a server."""

import pytest

from embedded.apiserver.registry.defaults import default_pod_spec
from embedded.apiserver.registry.workload_defaults import default_deployment
from embedded.apiserver.workloads.deployment_plan import plan_deployment
from embedded.apiserver.workloads.deployment_replica_sets import (
    DESIRED,
    HISTORY,
    MOST,
    REVISION,
    most_surplus,
    most_unavailable,
)
from embedded.tests.apiserver.conftest import NOON
from embedded.tests.apiserver.workload_objects import workload


def deployment(image="b:1", status=None, annotations=None, **spec):
    found = workload(image=image, **{"replicas": 10, **spec})
    found["metadata"] |= {"namespace": "default", "uid": "d", "generation": 1, "annotations": annotations or {}}
    found["status"] = status or {}
    default_deployment(found, default_pod_spec)
    return found


def replica_set(image, size, available=None, revision=1, told=10, most=13, **status):
    """One of `size` pods, all of which are there and available unless said otherwise."""
    found = deployment(image, replicas=size)
    found["metadata"] |= {"name": f"web-{image}", "uid": image, "creationTimestamp": f"2026-01-01T00:00:0{revision}Z"}
    found["metadata"]["annotations"] = {REVISION: str(revision), DESIRED: str(told), MOST: str(most)}
    serving = size if available is None else available
    numbers = {"replicas": size, "readyReplicas": serving, "availableReplicas": serving, "observedGeneration": 1}
    found["status"] = numbers | status
    return found


def sizes(plan, held):
    """The sizes after the plan, by image."""
    found = {each["metadata"]["uid"]: each["spec"]["replicas"] for each in held}
    return found | {each.obj["metadata"]["uid"]: each.replicas for each in plan.change}


ROLLING = {
    "room for a surplus grows the new one first": ([("a:1", 10, 10), ("b:1", 0, 0)], {}, {"a:1": 10, "b:1": 3}),
    "without room the old one shrinks by what may be missing": (
        [("a:1", 10, 10), ("b:1", 3, 0)],
        {},
        {"a:1": 8, "b:1": 3},
    ),
    "what serves nobody goes first": ([("a:1", 10, 6), ("b:1", 3, 0)], {}, {"a:1": 8, "b:1": 3}),
    "nothing goes before enough serve": ([("a:1", 8, 8), ("b:1", 5, 0)], {}, {"a:1": 8, "b:1": 5}),
    "as the new ones serve the old ones go": ([("a:1", 8, 8), ("b:1", 5, 5)], {}, {"a:1": 3, "b:1": 5}),
    "the last step": ([("a:1", 1, 1), ("b:1", 10, 10)], {}, {"a:1": 0, "b:1": 10}),
    "no surplus allowed": (
        [("a:1", 10, 10), ("b:1", 0, 0)],
        {"maxSurge": 0, "maxUnavailable": 1},
        {"a:1": 9, "b:1": 0},
    ),
    "nothing may be missing": (
        [("a:1", 10, 10), ("b:1", 1, 0)],
        {"maxSurge": 1, "maxUnavailable": 0},
        {"a:1": 10, "b:1": 1},
    ),
    "the oldest of several shrinks first": (
        [("z:1", 4, 4), ("a:1", 6, 6), ("b:1", 3, 3)],
        {},
        {"z:1": 0, "a:1": 5, "b:1": 3},
    ),
    "a new one that is too large shrinks": ([("b:1", 12, 12)], {}, {"b:1": 10}),
}


@pytest.mark.parametrize(("held", "rolling", "expected"), ROLLING.values(), ids=ROLLING)
def test_a_rolling_update_goes_step_by_step(held, rolling, expected):
    """Never fewer than may be missing, never more than may be too many."""
    sets = [replica_set(image, size, available, number) for number, (image, size, available) in enumerate(held, 1)]
    wanted = deployment(
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"} | rolling}
    )
    assert sizes(plan_deployment(wanted, sets, True, NOON), sets) == expected


@pytest.mark.parametrize("surge", [0, 1, "30%"])
@pytest.mark.parametrize("missing", [0, 2, "50%"])
@pytest.mark.parametrize("total", [1, 4, 7])
def test_an_update_comes_to_its_end_within_its_bounds(surge, missing, total):
    """Played through: pods serve one round after they were made."""
    rolling = {"maxSurge": surge, "maxUnavailable": missing}
    wanted = deployment(replicas=total, strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    most, least = total + most_surplus(wanted), total - most_unavailable(wanted)
    held = {"a:1": total, "b:1": 0}
    for _ in range(4 * total + 4):
        serving = dict(held)
        for _ in range(4):
            sets = [
                replica_set(image, size, min(size, serving[image]), number, total, most)
                for number, (image, size) in enumerate(held.items(), 1)
            ]
            held = sizes(plan_deployment(wanted, sets, True, NOON), sets)
            assert sum(held.values()) <= most
            assert sum(min(size, serving[image]) for image, size in held.items()) >= min(least, total)
        if held == {"a:1": 0, "b:1": total}:
            return
    raise AssertionError(f"stuck at {held}")


SHARED = {
    "grows in proportion, the larger takes the rest": (15, [("a:1", 8), ("b:1", 5)], {"a:1": 12, "b:1": 7}),
    "shrinks in proportion": (5, [("a:1", 8), ("b:1", 5)], {"a:1": 4, "b:1": 3}),
    "to none": (0, [("a:1", 8), ("b:1", 5)], {"a:1": 0, "b:1": 0}),
    "a lone one takes all": (15, [("a:1", 10), ("b:1", 0)], {"a:1": 15, "b:1": 0}),
}


@pytest.mark.parametrize(("total", "held", "expected"), SHARED.values(), ids=SHARED)
def test_a_change_of_size_in_the_middle_of_an_update_is_shared_out(total, held, expected):
    """https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling"""
    sets = [replica_set(image, size, revision=number) for number, (image, size) in enumerate(held, 1)]
    plan = plan_deployment(deployment(replicas=total), sets, True, NOON)
    assert sizes(plan, sets) == expected
    assert all(each.annotations[DESIRED] == str(total) for each in plan.change)


def test_a_first_look_makes_the_replica_set():
    """With as many pods as are wanted, and the first revision."""
    plan = plan_deployment(deployment("a:1", replicas=3), [], False, NOON)
    made = plan.create
    short = made["spec"]["selector"]["matchLabels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{short}" and made["spec"]["replicas"] == 3
    assert (
        made["metadata"]["labels"]
        == made["spec"]["template"]["metadata"]["labels"]
        == {"app": "web", "pod-template-hash": short}
    )
    assert made["metadata"]["annotations"] == {DESIRED: "3", MOST: "4", REVISION: "1"}
    assert plan.revision == "1" and [each["reason"] for each in plan.status["conditions"]] == [
        "NewReplicaSetCreated",
        "MinimumReplicasUnavailable",
    ]


def test_the_name_follows_from_the_template_alone():
    """And from how often it collided."""
    names = [
        plan_deployment(deployment("a:1", **more), [], False, NOON).create["metadata"]["name"]
        for more in ({}, {"replicas": 1}, {"status": {"collisionCount": 1}})
    ]
    assert names[0] == names[1] != names[2]


def test_a_way_back_gives_the_old_replica_set_the_newest_revision():
    """And remembers which it had."""
    sets = [replica_set("a:1", 0, revision=1), replica_set("b:1", 10, revision=2)]
    plan = plan_deployment(deployment("a:1"), sets, True, NOON)
    (back,) = [each for each in plan.change if each.obj["metadata"]["uid"] == "a:1"]
    assert (back.annotations[REVISION], back.annotations[HISTORY], plan.revision) == ("3", "1", "3")


def test_recreate_ends_the_old_pods_before_the_first_new_one_starts():
    """Step by step."""
    wanted = deployment(strategy={"type": "Recreate"})
    full, empty = replica_set("a:1", 10), replica_set("a:1", 0)
    first = plan_deployment(wanted, [full], True, NOON)
    assert (sizes(first, [full]), first.create) == ({"a:1": 0}, None)
    assert plan_deployment(wanted, [empty], True, NOON).create is None
    assert plan_deployment(wanted, [empty], False, NOON).create["spec"]["replicas"] == 10


def test_a_paused_deployment_changes_size_and_nothing_else():
    """The new template waits."""
    plan = plan_deployment(deployment(paused=True, replicas=4), [replica_set("a:1", 10)], True, NOON)
    assert plan.create is None and sizes(plan, []) == {"a:1": 4}
    assert ("Progressing", "DeploymentPaused") in {(each["type"], each["reason"]) for each in plan.status["conditions"]}


def test_the_oldest_revisions_beyond_the_limit_are_forgotten():
    """Only those without pods, and only when the update is complete."""
    old = [replica_set(f"{number}:1", 0, revision=number) for number in range(1, 5)]
    sets = [*old, replica_set("b:1", 10, revision=5)]
    done = {"updatedReplicas": 10, "replicas": 10, "availableReplicas": 10, "observedGeneration": 1}
    assert plan_deployment(deployment(revisionHistoryLimit=2, status=done), sets, False, NOON).delete == (
        "web-1:1",
        "web-2:1",
    )
    assert plan_deployment(deployment(revisionHistoryLimit=2), sets, False, NOON).delete == ()


def test_one_that_does_not_move_is_late():
    """progressDeadlineSeconds counts from the last progress."""
    status = {"replicas": 3, "updatedReplicas": 3, "unavailableReplicas": 3, "observedGeneration": 1}
    since = {
        "type": "Progressing",
        "status": "True",
        "reason": "ReplicaSetUpdated",
        "message": "",
        "lastUpdateTime": "2026-09-21T14:13:20Z",
        "lastTransitionTime": "2026-09-21T14:13:20Z",
    }
    wanted = deployment(replicas=3, progressDeadlineSeconds=60, status=status | {"conditions": [since]})
    sets = [replica_set("b:1", 3, 0, told=3, most=4)]
    assert plan_deployment(wanted, sets, False, NOON).look_again == NOON + 61
    late = plan_deployment(wanted, sets, False, NOON + 61)
    (told,) = [each for each in late.status["conditions"] if each["type"] == "Progressing"]
    assert (told["status"], told["reason"], late.look_again) == ("False", "ProgressDeadlineExceeded", None)


def test_what_a_replica_set_cannot_do_shows_at_the_deployment():
    """And goes when it can."""
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "no",
        "lastTransitionTime": "2026-09-21T14:13:20Z",
    }
    plan = plan_deployment(deployment(), [replica_set("b:1", 10, 0, conditions=[failure])], False, NOON)
    assert (
        failure.items() <= next(each for each in plan.status["conditions"] if each["type"] == "ReplicaFailure").items()
    )
    again = plan_deployment(deployment(status=plan.status), [replica_set("b:1", 10)], False, NOON)
    assert all(each["type"] != "ReplicaFailure" for each in again.status["conditions"])
