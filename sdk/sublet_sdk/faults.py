"""Faults: whose they are, and one sentence each.

CheckpointFault
├─ SettingFault       what the caller or the environment gave: name, what is wrong with it, what to give
├─ StorageFault       the storage did not do it, after all attempts; nothing that was saved before is lost
├─ CorruptCheckpoint  what is stored is not what was saved
└─ NoCheckpoint       there is none of that id
"""

from __future__ import annotations


class CheckpointFault(Exception):
    """Any fault of this package."""


class SettingFault(CheckpointFault):
    """An argument or an environment variable that cannot be used."""

    def __init__(self, name: str, problem: str, fix: str) -> None:
        super().__init__(f"{name}: {problem}; {fix}")


class StorageFault(CheckpointFault):
    """The storage failed each attempt; the cause is the last one's."""


class CorruptCheckpoint(CheckpointFault):
    """A file is absent, or its size or its SHA-256 is not the manifest's; or the manifest itself cannot be read."""


class NoCheckpoint(CheckpointFault):
    """No complete checkpoint of that id."""
