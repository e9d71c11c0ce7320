"""The pod of a member: its task's template with the job's labels, environment and terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from jobs.core import world
from jobs.core.frameworks.environment import environment
from jobs.core.owner import group_name, owner_reference
from jobs.core.peers import Peers, pod_name
from jobs.core.plugins import env, pytorch
from jobs.core.plugins.arguments import flags
from jobs.core.rules import needed
from jobs.core.shared_objects import NOTICE_FILE, Extra, extra
from model.job import labels
from model.job.job import Job, JobDialect, Member
from model.job.status import JobStatus
from model.priority import PreemptionPolicy

_GPU_LABELS = (
    "nvidia.com/gpu.product",
    "node.koordinator.sh/gpu-model",
    "cloud.google.com/gke-accelerator",
    "sublet.dev/gpu-type",
)
"""Node labels that say the kind of a node's GPUs."""


class PodBodies(msgspec.Struct, frozen=True, dict=True):
    """The objects of a job's pods at one look. What pods have in common is made once, and is the same object in all."""

    job: Job
    status: JobStatus
    peers: Peers
    priority_class: str

    def body(self, member: Member) -> dict[str, Any]:
        """The whole object of one."""
        job = self.job
        metadata = self._templates.get(member.task, {}).get("metadata") or {}
        name = pod_name(job.id.name, member)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": job.id.namespace,
                "labels": {**(metadata.get("labels") or {}), **_labels(job, self.status, member)},
                "annotations": {
                    **_asked_notice(job),
                    **job.inherited,
                    **({labels.CHECKPOINT_SOCKET: "true"} if job.checkpoint is not None else {}),
                    **(metadata.get("annotations") or {}),
                    **_annotations(job, self.status, member, self.peers),
                },
                "ownerReferences": [owner_reference(job)],
            },
            "spec": self._spec(member, name),
        }

    def _spec(self, member: Member, name: str) -> dict[str, Any]:
        variables = {**environment(self.job.framework, self.peers, member), **self._plugin_variables(member)}
        variables |= self._checkpoint_variables
        if self.job.elastic is not None:
            variables |= world.environment(name)
        made = {**self._specs.get(member.task, {})}
        if self.job.framework is not None or "svc" in self.job.plugins:
            made = {"hostname": name, "subdomain": self.job.id.name, **made}
        fields = (field for field in ("initContainers", "containers") if made.get(field))
        return {**made, **{field: _with(made[field], variables, self._extra) for field in fields}}

    def _plugin_variables(self, member: Member) -> dict[str, str]:
        told = env.environment(member) if "env" in self.job.plugins else {}
        return told | (pytorch.environment(self.peers, member, self._flags) if self._flags is not None else {})

    @cached_property
    def _checkpoint_variables(self) -> dict[str, str]:
        """Where processes save, by the names that the package sublet_sdk reads."""
        kept = self.job.checkpoint
        if kept is None:
            return {}
        return {
            "SUBLET_JOB_NAMESPACE": self.job.id.namespace,
            "SUBLET_JOB_NAME": self.job.id.name,
            "SUBLET_CHECKPOINT_URL": kept.url,
            "SUBLET_CHECKPOINT_INTERVAL_SECONDS": f"{kept.interval_seconds:.15g}",
            "SUBLET_CHECKPOINT_MAX": str(kept.most),
            "SUBLET_NOTICE_FILE": NOTICE_FILE,
        }

    @cached_property
    def _templates(self) -> dict[str, Mapping[str, Any]]:
        return {task.name: task.template for task in self.job.tasks}

    @cached_property
    def _specs(self) -> dict[str, dict[str, Any]]:
        """By task, without what is each pod's own."""
        return {task: self._common(template.get("spec") or {}) for task, template in self._templates.items()}

    def _common(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """With the volumes that its plugins add."""
        made = common_spec(self.job, spec, self.priority_class)
        if self._extra.volumes:
            made["volumes"] = [*(spec.get("volumes") or ()), *self._extra.volumes]
        return made

    @cached_property
    def _extra(self) -> Extra:
        return extra(self.job, self.peers)

    @cached_property
    def _flags(self) -> Mapping[str, str] | None:
        """Of the plugin pytorch, None without it."""
        return flags(self.job.plugins["pytorch"]) if "pytorch" in self.job.plugins else None


def common_spec(job: Job, spec: Mapping[str, Any], class_name: str) -> dict[str, Any]:
    """What all pods of a task have. What the template says itself stays, but for restarts of a failed container in
    place.
    """
    made = {
        **spec,
        "schedulerName": spec.get("schedulerName") or job.group.scheduler or "sublet-scheduler",
        **({"priorityClassName": class_name} if class_name and not spec.get("priorityClassName") else {}),
        **({} if spec.get("restartPolicy") else {"restartPolicy": "Never"}),
    }
    if job.group.gpu_type:
        made["affinity"] = _of_gpu_type(spec.get("affinity") or {}, job.group.gpu_type)
    return made


def selector(job: Job) -> dict[str, str]:
    """Labels by which Services and policies find the job's pods."""
    if job.id.dialect is JobDialect.VOLCANO:
        return {labels.VOLCANO_JOB: job.id.name, labels.VOLCANO_NAMESPACE: job.id.namespace}
    return {labels.JOB_NAME: job.id.name}


def _labels(job: Job, status: JobStatus, member: Member) -> dict[str, str]:
    own = {
        labels.JOB_UID: job.uid,
        labels.JOB_NAME: job.id.name,
        labels.TASK: member.task,
        labels.TASK_INDEX: str(member.index),
        labels.JOB_RUN: str(status.run),
    }
    queue = job.group.queue
    if job.id.dialect is JobDialect.TRAINING:
        kind = {labels.JOB_TYPE: job.framework.value} if job.framework is not None else {}
        return {**own, **kind, **({labels.QUEUE: queue} if queue else {}), labels.POD_GROUP: group_name(job)}
    volcano = {labels.VOLCANO_TASK: member.task, labels.VOLCANO_INDEX: str(member.index)}
    return {**own, **selector(job), **volcano, labels.VOLCANO_QUEUE: queue}


def _asked_notice(job: Job) -> dict[str, str]:
    """How long before others end it a pod that saves wants to be told."""
    grace = job.checkpoint.grace_seconds if job.checkpoint is not None else 0.0
    return {labels.NOTICE_SECONDS: f"{grace:.15g}"} if grace else {}


def _annotations(job: Job, status: JobStatus, member: Member, peers: Peers) -> dict[str, str]:
    told = {labels.RANK: str(peers.rank(member))}
    policy = job.group.preemption_policy
    if policy in (PreemptionPolicy.NEVER, PreemptionPolicy.ALWAYS):
        told[labels.PREEMPTION_POLICY] = policy.value
    if needed(job, member):
        told[labels.MINIMUM_MEMBER] = "true"
    if job.id.dialect is JobDialect.TRAINING:
        return told
    return {
        **told,
        labels.VOLCANO_TASK: member.task,
        labels.VOLCANO_INDEX: str(member.index),
        labels.VOLCANO_JOB: job.id.name,
        labels.VOLCANO_QUEUE: job.group.queue,
        labels.VOLCANO_VERSION: str(status.run),
        labels.VOLCANO_RETRIES: str(status.failures),
        labels.VOLCANO_GROUP: group_name(job),
    }


def _with(containers: Iterable[Mapping[str, Any]], variables: Mapping[str, str], added: Extra) -> list[dict[str, Any]]:
    """Each container with the variables and mounts that it does not name itself."""
    return [_with_each(container, variables, added) for container in containers]


def _with_each(container: Mapping[str, Any], variables: Mapping[str, str], added: Extra) -> dict[str, Any]:
    own = container.get("env") or []
    known = {each.get("name") for each in own}
    more = [{"name": name, "value": value} for name, value in variables.items()]
    # Before the container's own, which may refer to them: $(RANK).
    variables_first = [each for each in (*more, *added.variables) if each["name"] not in known]
    made = {**container, "env": [*variables_first, *own]}
    if added.mounts:
        taken = {each.get("mountPath") for each in container.get("volumeMounts") or ()}
        mounts = [each for each in added.mounts if each["mountPath"] not in taken]
        made["volumeMounts"] = [*(container.get("volumeMounts") or ()), *mounts]
    return made


def _of_gpu_type(affinity: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The affinity with nodes whose GPUs are of the kind: any one label is enough, beside each term that is there."""
    node = affinity.get("nodeAffinity") or {}
    required = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), _says(label, kind)]}
        for term in required.get("nodeSelectorTerms") or [{}]
        for label in _GPU_LABELS
    ]
    return {
        **affinity,
        "nodeAffinity": {**node, "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    }


def _says(label: str, kind: str) -> dict[str, Any]:
    return {"key": label, "operator": "In", "values": [kind]}
