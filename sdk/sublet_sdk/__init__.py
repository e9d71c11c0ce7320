"""Checkpoints of training that are never lost, and the notice before a process has to leave."""

from sublet_sdk.checkpoints import Checkpoints, Loaded, Page
from sublet_sdk.faults import CheckpointFault, CorruptCheckpoint, NoCheckpoint, SettingFault, StorageFault
from sublet_sdk.manifest import Checkpoint, JobKey
from sublet_sdk.notice import FileNotice, NoticeSource, SignalNotice
from sublet_sdk.saver import AsynchronousSaver
from sublet_sdk.session import Session
from sublet_sdk.settings import CheckpointSettings

__all__ = [
    "AsynchronousSaver", "Checkpoint", "CheckpointFault", "CheckpointSettings", "Checkpoints", "CorruptCheckpoint",
    "FileNotice", "JobKey", "Loaded", "NoCheckpoint", "NoticeSource", "Page", "Session", "SettingFault",
    "SignalNotice", "StorageFault",
]  # fmt: skip
