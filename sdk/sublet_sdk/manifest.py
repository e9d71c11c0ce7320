"""Manifest: the JSON file that makes a checkpoint complete, since it is written last. Pure.

A checkpoint of a job lies below `NAMESPACE/NAME/ID/`: the files that were saved, and `manifest.json`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sublet_sdk.faults import CorruptCheckpoint, SettingFault

MANIFEST = "manifest.json"
VERSION = 1
_ID = re.compile(r"0[0-8]\d{18}-[0-9a-f]{8}")
"""Of a time before the year 2255; others are nobody's."""
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_FILE = 512
"""Characters: a key of S3 has at most 1,024, with its folders."""
_PARTS_OF_A_FILE = re.compile(rf"{_PART.pattern}(/{_PART.pattern})*")


@dataclass(frozen=True)
class StoredFile:
    """Size in bytes, and SHA-256 in hexadecimal digits."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint, as its manifest tells.

    `job` is `namespace/name`. `begun` is when the state was handed over and `complete` when its last file was written,
    in Unix seconds. `size` is in bytes, of all files. `metadata` is the caller's, any JSON.
    """

    id: str
    job: str
    step: int
    epoch: int
    size: int
    begun: float
    complete: float
    files: Mapping[str, StoredFile]
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class JobKey:
    """Whose checkpoints they are.

    :raises SettingFault: a part is empty or has other characters than letters, digits, `.`, `_` and `-`
    """

    namespace: str
    name: str

    def __post_init__(self) -> None:
        for what, part in (("namespace", self.namespace), ("name", self.name)):
            if not _PART.fullmatch(part):
                raise SettingFault(f"job {what} {part!r}", "is no name", "give letters, digits, '.', '_' and '-'")

    @property
    def text(self) -> str:
        """`namespace/name`, also the folder."""
        return f"{self.namespace}/{self.name}"


def new_id(begun_ns: int, random: str) -> str:
    """An id that sorts by the time it was begun, and has no slash. `random` is eight hexadecimal digits."""
    return f"{begun_ns:020d}-{random}"


def is_id(text: str) -> bool:
    """Whether a folder below the job's has the form of an id; others are not ours."""
    return _ID.fullmatch(text) is not None


def begun_ns(checkpoint_id: str) -> int:
    """The time in an id, in Unix nanoseconds."""
    return int(checkpoint_id.partition("-")[0])


def checked_id(text: str) -> str:
    """The id, which a caller gave.

    :raises SettingFault: it has not the form of one
    """
    if not is_id(text):
        raise SettingFault(f"checkpoint {text!r}", "is no id of a checkpoint", "give one that list() returns")
    return text


def checked_file(name: str) -> str:
    """The name of a file of a checkpoint.

    :raises SettingFault: it leads out of the checkpoint's folder, or is the manifest's
    """
    if len(name) > _LONGEST_FILE or not _PARTS_OF_A_FILE.fullmatch(name) or name == MANIFEST:
        raise SettingFault(
            f"file {name[:_LONGEST_FILE]!r}",
            "is no name of a checkpoint's file",
            f"give a relative path of at most {_LONGEST_FILE} characters that is not manifest.json",
        )
    return name


def check_together(names: Collection[str]) -> None:
    """Files of one checkpoint lie in one folder.

    :raises SettingFault: one is a folder of another
    """
    for name in names:
        parts = name.split("/")
        for last in range(1, len(parts)):
            if (folder := "/".join(parts[:last])) in names:
                raise SettingFault(f"file {name!r}", f"lies below file {folder!r}", "give one of them another name")


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of it.

    :raises SettingFault: it is not JSON
    """
    try:
        copy = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as fault:
        raise SettingFault("metadata", f"is not JSON ({fault})", "give text, numbers, lists and objects") from fault
    return dict(copy)


def encoded(checkpoint: Checkpoint) -> bytes:
    """The manifest's text."""
    return json.dumps({"version": VERSION, **asdict(checkpoint)}, indent=1, sort_keys=True).encode()


def decoded(text: bytes, job: JobKey, checkpoint_id: str) -> Checkpoint:
    """The checkpoint of a manifest that lies in the folder of that job and id.

    :raises CorruptCheckpoint: it is cut off, of another version, or of another checkpoint
    """
    try:
        told = json.loads(text)
        if told["version"] != VERSION:
            raise ValueError(f"version {told['version']!r}, where {VERSION} is known")
        found = _read(told)
        if (found.job, found.id) != (job.text, checkpoint_id):
            raise ValueError(f"it is of checkpoint {found.id} of {found.job}")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, SettingFault) as fault:
        raise CorruptCheckpoint(
            f"checkpoint {checkpoint_id} of {job.text}: its manifest cannot be read: {fault}"
        ) from fault
    return found


def _read(told: Mapping[str, Any]) -> Checkpoint:
    files = {
        checked_file(name): StoredFile(int(each["size"]), str(each["sha256"])) for name, each in told["files"].items()
    }
    check_together(files)
    if not all(math.isfinite(told[when]) for when in ("begun", "complete")):
        raise ValueError("its times are no numbers")
    return Checkpoint(
        id=str(told["id"]),
        job=str(told["job"]),
        step=int(told["step"]),
        epoch=int(told["epoch"]),
        size=int(told["size"]),
        begun=float(told["begun"]),
        complete=float(told["complete"]),
        files=files,
        metadata=dict(told["metadata"]),
    )
