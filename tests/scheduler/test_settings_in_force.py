"""koord-scheduler-config in a running scheduler: in force from the next turn on, kept where it is wrong."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.scoring import ScoringStrategyType
from scheduler.cache import facts
from scheduler.core.preemption.policy import PreemptionPolicySettings
from scheduler.core.scores.policy import PLAIN_SCORE, PROFILES, SchedulerProfile
from scheduler.settings import SchedulerSettings

NAME = "koord-scheduler-config"
OFF, ON = "enablePreemption: false", "enablePreemption: true"


def config(args: str, plugin: str = "Coscheduling", version: str = "1") -> objects.ConfigMap:
    profile = f"{{schedulerName: koord-scheduler, pluginConfig: [{{name: {plugin}, args: {{{args}}}}}]}}"
    metadata = objects.Metadata(name=NAME, namespace="koordinator-system", uid="u", resource_version=version)
    return objects.ConfigMap(metadata, {NAME: f"kind: KubeSchedulerConfiguration\nprofiles: [{profile}]\n"})


def tell(world: World, config_map: objects.ConfigMap | None) -> World:
    world.loop.enqueue(facts.Configured(config_map))
    return world


def busy(world: World) -> World:
    """A node of one CPU of which 90 % are in use."""
    node = raw_node()
    amounts: dict[str, str | int | float] = {**(node.status.capacity or {}), "cpu": "1", "memory": "1Gi"}
    now = datetime.fromtimestamp(world.clock(), UTC).isoformat()
    usage = {"nodeUsage": {"resources": {"cpu": "900m", "memory": "900Mi"}}}
    status = {"updateTime": now, "nodeMetric": usage}
    metric = objects.NodeMetric(metadata=objects.Metadata(name="n1"), status=status)
    return world.see(msgspec.structs.replace(node, status=objects.NodeStatus(amounts, amounts)), metric)


def about_settings(world: World) -> list[str]:
    return [reason for reason, name, _ in world.announcer.events if name == NAME]


def indexed() -> World:
    """A node that a pod of low priority fills, and one of high priority that waits; nobody was evicted yet."""
    return World().see(raw_node(batch_cpu="1000"), raw_pod("low", batch_cpu="1000", node_name="n1", priority=1))


def test_preemption_is_switched_on_and_off() -> None:
    """Off: no pod is evicted. On again, without a restart: the pod that waits is tried at once."""
    world = tell(indexed(), config(OFF)).see(raw_pod("high", batch_cpu="1000", priority=9))
    world.turn()
    assert not world.turn(after=60).evictions and not world.evictor.evicted
    tell(world, config(ON)).turn()
    assert set(world.evictor.evicted) == {"low"}
    assert about_settings(world) == ["ConfigurationApplied", "ConfigurationApplied"]


def test_switching_off_ends_plans_on_their_way() -> None:
    """A victim that was told of its end, and is not gone yet, stays; the room is nobody's any more."""
    patient = raw_pod("low", batch_cpu="1000", node_name="n1", priority=1)
    told = {"sublet.dev/preemption-notice-seconds": "60"}
    patient = msgspec.structs.replace(patient, metadata=msgspec.structs.replace(patient.metadata, annotations=told))
    world = World().see(raw_node(batch_cpu="1000"), patient, raw_pod("high", batch_cpu="1000", priority=9))
    world.turn()
    assert world.courier.told and world.writer.nominated["high"] == "n1"
    tell(world, config(OFF)).turn(after=1)
    assert not world.courier.told and world.writer.nominated["high"] == ""
    assert not world.turn(after=120).evictions and not world.evictor.evicted


def test_a_wrong_document_keeps_what_it_said() -> None:
    """It is said on the ConfigMap, counted, and shown with the settings; put right, it holds again."""
    world = tell(indexed(), config(OFF)).see(raw_pod("high", batch_cpu="1000", priority=9))
    world.turn()
    turn = tell(world, config("enablePreemption: maybe", version="2")).turn(after=60)
    assert not turn.evictions
    (told,) = [text for reason, _, text in world.announcer.events if reason == "ConfigurationInvalid"]
    assert "enablePreemption: is 'maybe'" in told and told.endswith("; what it said before stays in force")
    in_force = world.cycle.settings_in_force.in_force
    assert (in_force.problem, in_force.version) == (told, "2")
    assert in_force.enabled_by == "ConfigMap koordinator-system/koord-scheduler-config"
    assert world.meter.refusals == ["ConfigMap"]
    tell(world, config(ON, version="3")).turn()
    assert set(world.evictor.evicted) == {"low"} and not world.cycle.settings_in_force.in_force.problem


def test_a_wrong_document_from_the_start_evicts_nobody() -> None:
    """Nothing is known of what it said before: pods are placed, and preemption waits for a word that can be read."""
    world = tell(World(), config("enablePreemption: maybe"))
    world.see(raw_node(batch_cpu="1000"), raw_pod("low", batch_cpu="1000", node_name="n1", priority=1))
    world.see(raw_node("n2", batch_cpu="500"), raw_pod("small"), raw_pod("high", batch_cpu="1000", priority=9)).turn()
    world.turn(after=60)
    assert world.binder.assigned == {"small": "n2"}
    assert not world.evictor.evicted and "nobody is evicted" in world.cycle.settings_in_force.in_force.problem
    tell(world, None).turn(after=60)
    assert set(world.evictor.evicted) == {"low"}


def test_a_deleted_document_brings_the_settings_back() -> None:
    """Those of the scheduler's own file, whatever they are."""
    base = SchedulerSettings(preemption=PreemptionPolicySettings(enable=False))
    world = tell(World(base), config(ON))
    world.see(raw_node(batch_cpu="1000"), raw_pod("low", batch_cpu="1000", node_name="n1", priority=1)).turn()
    assert world.cycle.settings.preemption.enable
    tell(world, None).see(raw_pod("high", batch_cpu="1000", priority=9)).turn()
    assert not world.evictor.evicted and world.cycle.settings == base
    assert world.cycle.settings_in_force.in_force.enabled_by == "settings"


def test_the_same_content_is_no_news() -> None:
    """The same list again, or a change of labels: nothing is said and nobody is tried again."""
    world = tell(indexed(), config(OFF)).see(raw_pod("high", batch_cpu="1000", priority=9))
    world.turn()
    assert not tell(world, config(OFF, version="2")).turn(after=20).decisions
    assert about_settings(world) == ["ConfigurationApplied"]


def test_what_nothing_acts_on_is_said() -> None:
    """On the ConfigMap, and with the settings."""
    world = tell(World(), config("enablePreemption: true, controllerWorkers: 2"))
    world.turn()
    assert about_settings(world) == ["ConfigurationApplied", "ConfigurationIgnored"]
    (told,) = world.cycle.settings_in_force.in_force.unserved
    assert "nothing acts on pluginConfig[Coscheduling].args.controllerWorkers" in told


def test_thresholds_of_measured_load() -> None:
    """A busy node takes no pod from the moment on in which a threshold is set, and takes it again without."""
    world = busy(World()).see(raw_pod("first", batch_cpu="100"))
    world.turn()
    assert "first" in world.binder.assigned
    limits = "usageThresholds: {cpu: 1, memory: 1}"
    tell(world, config(limits, "LoadAwareScheduling")).see(raw_pod("second", batch_cpu="100")).turn()
    assert "second" not in world.binder.assigned
    assert "usage exceed threshold" in world.writer.conditions["second"]
    tell(world, config("usageThresholds: {cpu: 0}", "LoadAwareScheduling")).turn()
    assert "second" in world.binder.assigned


def test_scoring() -> None:
    """Pods are spread, then packed."""
    world = World(SchedulerSettings(profiles=(SchedulerProfile(PROFILES[0].names),)))
    world.see(raw_node("a"), raw_node("b"), raw_pod("there", batch_cpu="500", node_name="a"))
    world.see(raw_pod("first", batch_cpu="100")).turn()
    assert world.binder.assigned["first"] == "b"
    packing = config("scoringStrategy: {type: MostAllocated}", "NodeResourcesFit")
    tell(world, packing).see(raw_pod("second", batch_cpu="100")).turn()
    assert world.cycle.settings.profiles[0].score.strategy is ScoringStrategyType.BINPACK
    assert world.binder.assigned["second"] == "a"


def test_the_timeout_of_gangs_that_name_none() -> None:
    """Gangs that are there are read again with it: those that say one of their own keep it."""
    world = World()
    plain, own = raw_group("plain", 2), raw_group("own", 2, schedule_timeout_seconds=77)
    world.loop.reread = lambda: world.see(plain, own) and None
    world.see(plain, own).turn()
    turn = tell(world, config("defaultTimeout: 30s")).turn()
    assert turn.reread
    world.turn()
    found = {key: world.cache.gangs.get(f"default/{key}") for key in ("plain", "own")}
    assert {key: each.gang.spec.timeout_seconds for key, each in found.items() if each} == {"plain": 30, "own": 77}


STAND_IN = SchedulerSettings(profiles=(*PROFILES, SchedulerProfile(("default-scheduler",), PLAIN_SCORE, plain=True)))


def test_a_plain_profile_knows_nothing_of_gangs() -> None:
    """S37: a member that names no scheduler of ours is placed by itself; batch amounts count for it as any other."""
    world = World(STAND_IN).see(raw_node(batch_cpu="1000"), raw_group("train", 2))
    world.see(raw_pod("lone", group="train", scheduler_name="default-scheduler"), raw_pod("member", group="train"))
    world.turn()
    assert set(world.binder.assigned) == {"lone"}
    world.see(raw_pod("huge", batch_cpu="5000", scheduler_name="default-scheduler")).turn()
    assert "Insufficient kubernetes.io/batch-cpu" in world.writer.conditions["huge"]


def test_a_plain_profile_knows_nothing_of_measured_load() -> None:
    """A threshold keeps a pod of koord-scheduler off the busy node, and no other."""
    world = tell(World(STAND_IN), config("usageThresholds: {cpu: 1, memory: 1}", "LoadAwareScheduling"))
    busy(world).see(
        raw_pod("ours", batch_cpu="100"), raw_pod("theirs", batch_cpu="100", scheduler_name="default-scheduler")
    ).turn()
    assert set(world.binder.assigned) == {"theirs"}
