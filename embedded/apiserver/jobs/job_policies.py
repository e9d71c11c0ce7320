"""What a Job's policies make of failed pods and succeeded indexes.

https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy and #success-policy
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.jobs.job_pods import ContainerEnd, JobPod, PodCondition
from embedded.apiserver.validation.completion_indexes import parse_indexes


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one failed pod means: whether it counts as a try, ends its index, or (with this message) the job."""

    counted: bool = True
    fails_index: bool = False
    fails_job: str = ""


def judge(spec: Object, namespace: str, pod: JobPod) -> Verdict:
    """The first rule of the pod failure policy that matches decides; without one the failure counts."""
    for number, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        if message := _match(rule, f"{namespace}/{pod.name}", pod):
            action = rule["action"]
            fails_job = f"{message} matching {action} rule at index {number}" if action == "FailJob" else ""
            return Verdict(action != "Ignore", action == "FailIndex", fails_job)
    return Verdict()


def _match(rule: Object, shown: str, pod: JobPod) -> str:
    """What about the pod matches the rule, in words; empty where nothing does."""
    if codes := rule.get("onExitCodes"):
        ended = next((c for c in pod.containers if _code_matches(codes, c)), None)
        if ended is not None and ended.ended is not None:
            return f"Container {ended.name} for pod {shown} failed with exit code {ended.ended.exit_code}"
    elif patterns := rule.get("onPodConditions"):
        found = next((c for c in pod.conditions if _condition_matches(patterns, c)), None)
        if found is not None:
            return f"Pod {shown} has condition {found.type}"
    return ""


def _code_matches(codes: Object, container: ContainerEnd) -> bool:
    if container.ended is None or container.ended.exit_code == 0:
        return False
    if codes.get("containerName") not in (None, container.name):
        return False
    return bool((container.ended.exit_code in codes["values"]) == (codes["operator"] == "In"))


def _condition_matches(patterns: Iterable[Object], found: PodCondition) -> bool:
    return any(found.type == p["type"] and found.status == p.get("status", "True") for p in patterns)


def success_rule(spec: Object, done: frozenset[int]) -> int | None:
    """The number of the first rule of the success policy that these succeeded indexes fulfil."""
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        wanted = parse_indexes(rule["succeededIndexes"]) if rule.get("succeededIndexes") is not None else None
        reached = done if wanted is None else done & wanted
        needed = rule.get("succeededCount")
        if len(reached) >= (needed if needed is not None else len(wanted or ())):
            return number
    return None
