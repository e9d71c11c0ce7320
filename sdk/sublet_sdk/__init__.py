"""Checkpoints of training that are never lost, the notice before a process has to leave, and who trains together."""

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.checkpoints import Checkpoints, Loaded, Page
from sublet_sdk.elastic import World, world
from sublet_sdk.faults import CheckpointFault, CorruptCheckpoint, NoCheckpoint, SettingFault, StorageFault
from sublet_sdk.manifest import Checkpoint, JobKey
from sublet_sdk.notice import FileNotice, NoticeSource, SignalNotice
from sublet_sdk.saver import AsynchronousSaver
from sublet_sdk.session import Session
from sublet_sdk.settings import CheckpointSettings

__all__ = [
    "AgentSocket", "AsynchronousSaver", "Checkpoint", "CheckpointFault", "CheckpointSettings", "Checkpoints",
    "CorruptCheckpoint", "FileNotice", "JobKey", "Loaded", "NoCheckpoint", "NoticeSource", "Page", "Session",
    "SettingFault", "SignalNotice", "StorageFault", "World", "world",
]  # fmt: skip
