"""Manifest: what is written is read, and nothing else is; names that lead elsewhere are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from sdk_cases import JOB

from sublet_sdk import manifest
from sublet_sdk.faults import CorruptCheckpoint, SettingFault
from sublet_sdk.manifest import Checkpoint, JobKey, StoredFile

ID = manifest.new_id(1_800_000_000_000_000_001, "0a1b2c3d")
SAVED = Checkpoint(ID, "ml/bert", 7, 2, 3, 1.5, 2.5, {"a/b.npz": StoredFile(3, "ff")}, {"loss": [0.5, None]})


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert manifest.decoded(manifest.encoded(SAVED), JOB, ID) == SAVED


def test_ids_sort_by_time_and_have_no_slash() -> None:
    ids = [manifest.new_id(moment, "ffffffff") for moment in (5, 40, 1_800_000_000_000_000_000)]
    assert ids == sorted(ids) and all(manifest.is_id(each) and "/" not in each for each in ids)
    assert [manifest.begun_ns(each) for each in ids] == [5, 40, 1_800_000_000_000_000_000]


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(manifest.encoded(SAVED)), **fields}).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "cut off": (manifest.encoded(SAVED)[:-20], "cannot be read"),
        "not an object": (b"[]", "cannot be read"),
        "empty": (b"", "cannot be read"),
        "of a later version": (changed(version=2), "version 2, where 1 is known"),
        "of another job": (manifest.encoded(replace(SAVED, job="ml/other")), "is of checkpoint"),
        "of another id": (changed(id="x"), "is of checkpoint x"),
        "a file above its folder": (
            changed(files={"../../x": {"size": 1, "sha256": ""}}),
            "no name of a checkpoint's file",
        ),
        "a file without a checksum": (changed(files={"a": {"size": 1}}), "'sha256'"),
        "no step": (changed(step=None), "cannot be read"),
        "a step without end": (changed(step=float("inf")), "cannot be read"),
        "a time without end": (changed(begun=float("inf")), "its times are no numbers"),
        "lists without end": (b"[" * 200_000, "cannot be read"),
        "a file that is a folder, too": (
            changed(files={"m": {"size": 1, "sha256": ""}, "m/n": {"size": 1, "sha256": ""}}),
            "lies below file 'm'",
        ),
        "a file with a path without end": (changed(files={"a/" * 600 + "a": {"size": 1, "sha256": ""}}), "at most 512"),
    }.values(),
)
def test_what_is_no_manifest(text: bytes, said: str) -> None:
    with pytest.raises(CorruptCheckpoint, match=said) as raised:
        manifest.decoded(text, JOB, ID)
    assert ID in str(raised.value) and "ml/bert" in str(raised.value)


@pytest.mark.parametrize("part", ["", "a/b", "..", ".hidden", "a b", "a\n"])
def test_a_job_has_a_namespace_and_a_name(part: str) -> None:
    for given in ((part, "name"), ("namespace", part)):
        with pytest.raises(SettingFault, match="is no name; give letters"):
            JobKey(*given)


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/../b", "a//b", "a/", "manifest.json", "a\\b"])
def test_a_file_stays_in_its_folder(name: str) -> None:
    with pytest.raises(SettingFault, match="give a relative path"):
        manifest.checked_file(name)


def test_metadata_is_json() -> None:
    assert manifest.checked_metadata({"a": (1, 2)}) == {"a": [1, 2]}
    for bad in ({"a": object()}, {"a": float("nan")}):
        with pytest.raises(SettingFault, match="metadata: is not JSON"):
            manifest.checked_metadata(bad)


def test_an_id_that_a_caller_gives_is_one() -> None:
    assert manifest.checked_id(ID) == ID
    for bad in ("", "../" + ID, ID + "/x", "latest"):
        with pytest.raises(SettingFault, match="give one that list"):
            manifest.checked_id(bad)
