"""Plugin env: the index of a pod in its task.

Source: volcano pkg/controllers/job/plugins/env.
"""

from __future__ import annotations

from model.job.job import Member


def environment(member: Member) -> dict[str, str]:
    """Both the name and the old one."""
    return {"VC_TASK_INDEX": str(member.index), "VK_TASK_INDEX": str(member.index)}
