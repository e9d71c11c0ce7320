"""Volcano's Command (bus.volcano.sh/v1alpha1): what somebody orders of a job once, as `vcctl job suspend` does.

Source: volcano.sh/apis pkg/apis/bus/v1alpha1/commands.go; volcano pkg/cli/job/util.go.
"""

from __future__ import annotations

from kube.objects import VolcanoCommand, unix_seconds
from model.job.job import JobCommand, RuleAction

RESOURCE = "bus.volcano.sh/v1alpha1/commands"
_KIND, _GROUP = "Job", "batch.volcano.sh/"
_ACTIONS = {
    action.value: action
    for action in (
        RuleAction.ABORT_JOB,
        RuleAction.RESUME_JOB,
        RuleAction.RESTART_JOB,
        RuleAction.COMPLETE_JOB,
        RuleAction.TERMINATE_JOB,
    )
}


def target_uid(source: VolcanoCommand) -> str:
    """The uid of the Job that it is about; empty where it is about anything else."""
    target = source.target
    if target is None or target.kind != _KIND or not target.api_version.startswith(_GROUP):
        return ""
    return target.uid


def volcano_command(source: VolcanoCommand) -> JobCommand:
    """`action` is None for one that is not known."""
    metadata = source.metadata
    return JobCommand(
        name=metadata.name,
        uid=metadata.uid,
        given_seconds=unix_seconds(metadata.creation_timestamp),
        action=_ACTIONS.get(source.action),
        text=source.action[:80],
    )
