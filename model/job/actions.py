"""What is to be done for a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from model.job.job import Member
from model.job.status import JobStatus


class MadeKind(StrEnum):
    """Kinds of objects that are made for a job beside its pods."""

    POD_GROUP = "PodGroup"
    VOLCANO_POD_GROUP = "PodGroup.scheduling.volcano.sh"
    SERVICE = "Service"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"
    NETWORK_POLICY = "NetworkPolicy"


class CreatePod(msgspec.Struct, frozen=True, tag=True):
    """Make the pod of a member. Its object is made as it is written: a job may have thousands."""

    member: Member
    made: Callable[[Member], Mapping[str, Any]]

    @property
    def body(self) -> Mapping[str, Any]:
        """The object."""
        return self.made(self.member)


class DeletePod(msgspec.Struct, frozen=True, tag=True):
    """Delete this very pod."""

    name: str
    uid: str


class EnsureObject(msgspec.Struct, frozen=True, tag=True):
    """Make the object `body`, unless it is there; then merge `changes` into it. A Secret's keys are made on the way."""

    kind: MadeKind
    name: str
    body: Mapping[str, Any]
    changes: Mapping[str, Any] = {}


class DeleteJob(msgspec.Struct, frozen=True, tag=True):
    """Delete the job itself, which has ended and whose time is over."""


class DeleteCommand(msgspec.Struct, frozen=True, tag=True):
    """Delete this very command, which was obeyed."""

    name: str
    uid: str


class TellEvent(msgspec.Struct, frozen=True, tag=True):
    """An Event on the job."""

    reason: str
    message: str
    warning: bool = False


JobAction = CreatePod | DeletePod | EnsureObject | DeleteJob | DeleteCommand | TellEvent


class JobPlan(msgspec.Struct, frozen=True):
    """`status` is written first where it differs from what is stored; the actions follow in their order.

    `again_seconds` is after how long the job is to be looked at again though nothing changes; 0: never.
    """

    status: JobStatus
    actions: tuple[JobAction, ...] = ()
    again_seconds: float = 0.0
