"""Every parser of text from outside as a function of bytes, with the errors it may answer bad text with."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agent.core.evict.pod_messages import checkpoint_told
from agent.core.observe import isolated, knobs, layout, network, parse, topology, unaccounted
from agent.core.observe.observation import Knob
from agent.core.observe.prediction import (
    Checkpoint,
    PeakSample,
    PredictionFacts,
    PredictionPolicy,
    PredictionState,
    predict,
    restored,
    train,
)
from agent.files import statefile
from agent.report import journal
from agent.settings import AgentSettings, load_settings
from agent.tick import Tick
from embedded.node.streams import spdy
from jobs.core.plan import plan
from jobs.core.policy import JobFacts, JobPolicy
from kube import objects
from kube.client import decode
from kube.dialects.documents import duration
from kube.dialects.gangs import makers, nested, networktopology, podgroups
from kube.dialects.gangs import volcano as volcano_groups
from kube.dialects.gangs.maker_objects import maker_object
from kube.dialects.jobs import reading as jobs
from kube.dialects.jobs.volcano_command import target_uid, volcano_command
from kube.dialects.koordinator import (
    cpuqos,
    labels,
    memoryqos,
    nodemetric,
    nodesettings,
    oomscores,
    reservation,
    schedulerconfig,
)
from kube.dialects.koordinator import topology as topologies
from kube.dialects.koordinator.cpubinding import node_cpus
from kube.dialects.koordinator.sloconfig import colocation_overlaid
from kube.dialects.koordinator.systemqos import system_cpus
from kube.dialects.queues import kueue_objects, reading
from kube.dialects.queues.use import use_of
from kube.dialects.suspended.reading import restore_patch, start_patch, stop_patch, suspended_job
from kube.dialects.suspended.stand_ins import stand_ins
from kube.dialects.suspended.workload import spec_of, workload
from kube.dialects.upstream import core_objects
from model import quantity
from model import topology as cpus
from model.fault import ConfigurationFault, KernelFault, KubernetesFault, PeerFault
from model.job.actions import CreatePod, EnsureObject
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.resources import CPU, MEMORY, ResourceVector
from model.suspended.job import PodSetInjection, SuspendedKind
from scheduler import settings as scheduler_settings
from tests.agent.simulated_node import LAYOUT, SimulatedNode

Parser = Callable[[bytes], Any]
_UNDECODABLE = (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError)
"""What msgspec answers bad JSON with."""


class Target(NamedTuple):
    """`parse` answers with a value or raises exactly one of `refusals`; `signed` allows whole numbers below zero,
    `endless` -1 alone, which stands for no end.
    """

    parse: Parser
    refusals: tuple[type[Exception], ...]
    signed: bool = False
    endless: bool = False


def _of_text(function: Callable[[str], Any]) -> Parser:
    return lambda data: function(data.decode(errors="replace"))


def _names(data: bytes) -> object:
    """A cgroup directory's name, read under both drivers."""
    name = data.decode(errors="replace")
    systemd = layout.Layout("/kubepods.slice", 2, layout.CgroupDriver.SYSTEMD)
    return [
        (known.pod_uid_of(name), known.container_id_of(name), layout.driver_of(name))
        for known in (layout.Layout(), systemd)
    ]


def _layout(data: bytes) -> object:
    """Directories below the mount, one a line."""
    found = layout.detect("/sys/fs/cgroup", 2, data.decode(errors="replace").split("\n"))
    return found, found.best_effort, found.burstable


def _quantity(data: bytes) -> object:
    """All readings of one quantity; the stored form means the same amount, or the nearest one that can be stored."""
    text = data.decode(errors="replace")
    stored = quantity.canonical(text)
    assert quantity.canonical(stored) == stored, stored
    quantity.parse_millis(text), quantity.parse_units(text)
    return quantity.parse_units(stored)


def _json(kind: type, read: Callable[[Any], object]) -> Parser:
    """An object as the API server sends it, then into the model."""
    return lambda data: read(decode(data, kind, "fuzz"))


def _node_words(source: objects.Node) -> object:
    """Everything the agent reads of a Node."""
    node = core_objects.node(source)
    return (
        node,
        nodesettings.read(nodesettings.Sources(node))[0].node,
        labels.third_party(node),
        labels.normalization_ratio(node),
        labels.raw_allocatable(node),
        reservation.reservation(node),
        nodesettings.annotated_strategy(node),
        topologies.unusable_cpus(node, ()),
        system_cpus(node),
    )


def _node_metric(source: objects.NodeMetric) -> object:
    found = nodemetric.node_metric(source)
    policy = nodemetric.collect_policy(source)
    return found, nodemetric.status(found, "now"), colocation_overlaid(NodeSettings().colocation, policy)


def _queue(source: reading.AnyQueue) -> object:
    """The queue, what its status says, and where it would stand alone; a problem is one line."""
    found = reading.read(source)
    assert "\n" not in found.problem
    return found.queue, use_of(source), reading.by_namespace([found])


def _node_topology(source: topologies.NodeResourceTopology) -> object:
    return topologies.zones(source), topologies.cpu_basics(source)


class _Sources(msgspec.Struct, frozen=True):
    node: objects.Node | None = None
    config_map: objects.ConfigMap | None = None
    slo: objects.NodeSLO | None = None
    metric: objects.NodeMetric | None = None


def _settings_of_node(source: _Sources) -> object:
    """All documents together: reading collects faults, merging cannot fail."""
    node = core_objects.node(source.node) if source.node else None
    documents, faults = nodesettings.read(
        nodesettings.Sources(node, source.config_map, source.slo, source.metric), nodesettings.Documents()
    )
    for fault in faults:
        assert "\n" not in str(fault)
    return nodesettings.node_settings(documents, NodeSettings())


def _checkpoint(data: bytes) -> object:
    """What is accepted must also bear learning and predicting."""
    saved = msgspec.json.decode(data, type=Checkpoint)
    policy = PredictionPolicy()
    now = max((model.updated_seconds for model in saved.models.values()), default=0.0)
    pods = tuple(Pod("default", key, key) for key in saved.models)
    state = restored(saved, now, policy)
    state = train(state, [PeakSample(key, 1000, 1 << 30) for key in state.models], now + 60, policy)
    allocatable = ResourceVector({CPU: 8000, MEMORY: 32 << 30})
    return _foreseen(state, PredictionFacts("n", allocatable, pods, now + 60), policy)


def _foreseen(state: PredictionState, facts: PredictionFacts, policy: PredictionPolicy) -> object:
    found = predict(state, facts, policy)
    return (found.prod_reclaimable, found.prod_peak) if found else None


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sublet-fuzz-")


def _file(load: Callable[[Path], object]) -> Parser:
    def parse_file(data: bytes) -> object:
        path = Path(_folder().name) / "settings.yaml"
        path.write_bytes(data)
        return load(path)

    return parse_file


_KERNEL: Mapping[str, Parser] = {
    **{
        name: getattr(parse, name)
        for name in (
            *("counter", "v1_cpu_time", "v2_cpu_time", "v1_throttling", "v1_memory", "v2_memory", "v1_oom_kills"),
            *(
                "v2_memory_events",
                "stalls",
                "v2_disk",
                "v1_disk",
                "busy_ticks",
                "meminfo",
                "swapped",
                "swap_free",
                "reclaimable",
                "dentries_in_use",
                "index_nodes",
                "droppable_nodes",
                "cpu_count",
            ),
            *("pids_limit", "task_count", "refaults", "vmstat", "v2_limit_hits", "v2_anonymous"),
        )
    },
    "kernel_memory": lambda data: parse.kernel_memory(data, 1 << 30, 1 << 20, 1 << 20),
    "numa_memory": topology.numa_memory,
    "accounted_ticks": unaccounted.accounted_ticks,
    "idle_ticks": lambda text: isolated.idle_ticks(text, range(8)),
    "isolated_cpus": isolated.cpu_numbers,
    "uptime_ns": unaccounted.uptime_ns,
    "busy_ticks_by_cpu": topology.busy_ticks_by_cpu,
    "cpu_model": topology.model_and_vendor,
    "interfaces": network.interfaces,
    "listening_users": lambda data: network.listening_users(data, 10316),
    "kubelet_cpus": lambda data: topology.kubelet_cpus(data, ()),
    "cpu_list": _of_text(lambda text: cpus.format_cpus(cpus.parse_cpus(text))),
    "cgroup_name": _names,
}


_VOLCANO = objects.VolcanoJob(
    objects.Metadata(name="train", namespace="ml", uid="u1"),
    msgspec.Raw(b'{"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}}]}'),
)


def _job(source: objects.TrainingJob | objects.VolcanoJob) -> object:
    """What is accepted must also make pods, twice, and statuses that can be read again."""
    job, status = jobs.job(source), jobs.status(source)
    if sum(task.replicas for task in job.tasks) > 50:
        return job.problem
    for now in (1_700_000_000.0, 1_700_000_100.0):
        made = plan(job, status, (), JobFacts({"high": 7}), JobPolicy(), now)
        written = jobs.written(job, made.status)
        status = jobs.status(type(source)(source.metadata, source.spec, written))
        msgspec.json.encode([action.body for action in made.actions if isinstance(action, CreatePod | EnsureObject)])
    return job.problem, written


def _command(source: objects.VolcanoCommand) -> object:
    """An action of any name is told of, and gone, at the next look."""
    facts = JobFacts(commands=(volcano_command(source),))
    made = plan(jobs.job(_VOLCANO), jobs.status(_VOLCANO), (), facts, JobPolicy(), 1_700_000_000.0)
    return target_uid(source), jobs.written(jobs.job(_VOLCANO), made.status)


def _made(source: objects.Pod) -> object:
    """Of a maker that is not known; a gang that follows has a name."""
    found = makers.made_pod(source.metadata)
    gang = makers.gang_of_made(found, None) if found else None
    assert gang is None or (gang.name and gang.spec)
    return found


def _nested(source: objects.CompositePodGroup) -> object:
    """With one PodGroup below it; a tree of any shape comes to an end."""
    found = nested.composite(source)
    return nested.nestings({"ns/g": found.key}, {found.key: found})


def _suspended(kind: SuspendedKind) -> Callable[[objects.UntypedObject], object]:
    """What can be read is started and restored as well."""

    def read(source: objects.UntypedObject) -> object:
        job = suspended_job(kind, source)
        if job.problem:
            return job.problem
        body = {"podSets": spec_of(job, 1, "", "")["podSets"]}
        kept = workload(objects.Workload(objects.Metadata("w", "ns"), body))
        given = tuple(PodSetInjection(pods.name, 1, {"pool": "x"}) for pods in job.pod_sets)
        patches = (start_patch(job, source, "w", given), restore_patch(job, source, kept), stop_patch(source))
        return [sorted(patch) for patch in patches]

    return read


def _workload(source: objects.Workload) -> object:
    """What waits has stand-ins."""
    found = workload(source)
    return stand_ins(found, {"high": 7}.get, 0.0) if found.count <= 50 else found.unreadable


_OBJECTS: Mapping[str, Parser] = {
    "suspended_job": _json(objects.UntypedObject, _suspended(SuspendedKind.JOB)),
    "suspended_job_set": _json(objects.UntypedObject, _suspended(SuspendedKind.JOB_SET)),
    "suspended_training_job": _json(objects.UntypedObject, _suspended(SuspendedKind.TRAINING)),
    "workload": _json(objects.Workload, _workload),
    "node": _json(objects.Node, _node_words),
    "pod_group": _json(objects.PodGroup, podgroups.pod_group),
    "volume": _json(objects.PersistentVolume, core_objects.volume),
    "budget": _json(objects.PodDisruptionBudget, core_objects.budget),
    "network_topology": _json(objects.ClusterNetworkTopology, networktopology.layers),
    "scheduler_config": _of_text(lambda text: schedulerconfig.read({"k": text})),
    "node_metric": _json(objects.NodeMetric, _node_metric),
    "node_topology": _json(topologies.NodeResourceTopology, _node_topology),
    "node_cpus": _json(objects.NodeResourceTopology, node_cpus),
    "volcano_pod_group": _json(objects.VolcanoPodGroup, volcano_groups.volcano_gang),
    "volcano_queue": _json(objects.VolcanoQueue, _queue),
    "training_job": _json(objects.TrainingJob, _job),
    "volcano_job": _json(objects.VolcanoJob, _job),
    "volcano_command": _json(objects.VolcanoCommand, _command),
    "elastic_quota": _json(objects.ElasticQuota, _queue),
    "cohort": _json(objects.Cohort, _queue),
    "local_queue": _json(objects.LocalQueue, kueue_objects.submission_queue),
    "resource_flavor": _json(objects.ResourceFlavor, kueue_objects.flavor),
    "kueue_topology": _json(objects.Topology, kueue_objects.levels),
    "job_maker": _json(objects.Job, maker_object),
    "job_set_maker": _json(objects.JobSet, maker_object),
    "leader_worker_set_maker": _json(objects.LeaderWorkerSet, maker_object),
    "pytorch_job_maker": _json(objects.PyTorchJob, maker_object),
    "made_pod": _json(objects.Pod, _made),
    "composite_pod_group": _json(objects.CompositePodGroup, _nested),
}


def _spdy(data: bytes) -> object:
    """In two pieces, so that frames are cut."""
    reader = spdy.FrameReader()
    return [len(str(frame)) for part in (data[:7], data[7:]) for frame in reader.feed(part)]


TARGETS: Mapping[str, Target] = {
    "spdy": Target(_spdy, (spdy.FrameError,)),
    "pod_message": Target(lambda text: checkpoint_told(text, 1000.0), (PeerFault,)),
    **{name: Target(function, (ValueError,)) for name, function in _KERNEL.items()},
    **{name: Target(function, (KubernetesFault, ConfigurationFault)) for name, function in _OBJECTS.items()},
    "node_settings": Target(_json(_Sources, _settings_of_node), (KubernetesFault, ConfigurationFault), endless=True),
    "upstream_pod_group": Target(
        _json(objects.UpstreamPodGroup, podgroups.upstream_gang), (KubernetesFault, ConfigurationFault), signed=True
    ),
    "cluster_queue": Target(_json(objects.ClusterQueue, _queue), (KubernetesFault, ConfigurationFault), signed=True),
    "workload_priority": Target(
        _json(objects.WorkloadPriorityClass, kueue_objects.priority), (KubernetesFault, ConfigurationFault), signed=True
    ),
    "queue": Target(_json(objects.Queue, _queue), (KubernetesFault, ConfigurationFault), signed=True),
    "memory_qos": Target(_of_text(lambda text: memoryqos.pod_memory({memoryqos.ANNOTATION: text})), (), signed=True),
    "pod": Target(_json(objects.Pod, core_objects.pod), (KubernetesFault, ConfigurationFault), signed=True),
    "cpu_qos": Target(_of_text(lambda text: cpuqos.pod_identity({cpuqos.ANNOTATION: text})), (), signed=True),
    "oom_scores": Target(
        _of_text(lambda text: oomscores.oom_scores({oomscores.ANNOTATION_SPEC: text})), (), signed=True
    ),
    "whole_number": Target(parse.whole_number, (ValueError,), signed=True),
    "cpu_max": Target(lambda data: knobs.value_of(Knob("/", "", "cpu.max"), data), (ValueError,), signed=True),
    "cpu_uclamp": Target(lambda data: knobs.value_of(Knob("/", "", "cpu.uclamp.max"), data), (ValueError,)),
    "cpuset_cpus": Target(lambda data: knobs.value_of(Knob("/", "cpuset", "cpuset.cpus"), data), (ValueError,)),
    "memory_max": Target(lambda data: knobs.value_of(Knob("/", "", "memory.max"), data), (ValueError,), signed=True),
    "state_file": Target(_file(statefile.originals_in), ()),
    "cgroup_layout": Target(_layout, (KernelFault,)),
    "quantity": Target(_quantity, (quantity.QuantityError,), signed=True),
    "duration": Target(_of_text(duration.go_duration_seconds), ()),
    "checkpoint": Target(_checkpoint, _UNDECODABLE),
    "journal": Target(
        lambda data: sum(1 for _ in journal.read(data.splitlines(True), "journal")), (ConfigurationFault,)
    ),
    "agent_settings": Target(_file(load_settings), (ConfigurationFault,), endless=True),
    "scheduler_settings": Target(_file(scheduler_settings.load), (ConfigurationFault,), signed=True),
}


def corpus(name: str) -> dict[str, bytes]:
    """File name → text of a target's corpus; `seed-…` are texts it must accept, `finding-…` once broke it."""
    folder = Path(__file__).parent / "corpus" / name
    made = {"seed-made": _journal()} if name == "journal" else {}
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*-*"))} | made


@functools.cache
def _journal() -> bytes:
    """A short journal as the agent writes it today; a file would be stale after each change of its format."""
    node = SimulatedNode(3, pods=1)
    tick = Tick(LAYOUT, AgentSettings(), node.ports(), ())
    lines = [msgspec.json.encode(journal.JournalHead(LAYOUT, AgentSettings(), tick.state))]
    writer = journal.LineWriter()
    for _ in range(3):
        node.advance()
        lines.append(writer.line(tick.run()))
    return b"".join(line + b"\n" for line in lines)
