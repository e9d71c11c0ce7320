"""World: what a process of an elastic job reads of it, and what one reads where there is no such file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sublet_sdk import World, world
from sublet_sdk.faults import SettingFault

TOLD = {"generation": 3, "size": 2, "minimum": 2, "maximum": 4, "members": ["bert-worker-0", "bert-worker-2"]}


def pod(folder: Path, told: object = TOLD, member: str = "bert-worker-2") -> dict[str, str]:
    """Its variables."""
    (folder / "world.json").write_text(told if isinstance(told, str) else json.dumps(told))
    return {"SUBLET_WORLD_FILE": str(folder / "world.json"), "SUBLET_WORLD_MEMBER": member, "RANK": "2"}


def test_a_rank_is_the_place_in_the_list(tmp_path: Path) -> None:
    """And not the index in the pod's name, of which one may be absent."""
    assert world(pod(tmp_path)) == World(3, 2, 1, 2, 4, ("bert-worker-0", "bert-worker-2"))
    assert world(pod(tmp_path, member="bert-worker-1")).rank is None


def test_it_is_read_again_each_time(tmp_path: Path) -> None:
    variables = pod(tmp_path)
    assert world(variables).size == 2
    more = {**TOLD, "generation": 4, "members": [*TOLD["members"], "bert-worker-3"]}  # type: ignore[misc]
    pod(tmp_path, more)
    assert (world(variables).size, world(variables).generation, world(variables).rank) == (3, 4, 1)


PLAIN: dict[str, tuple[dict[str, str], World]] = {
    "alone": ({}, World(0, 1, 0, 1, 1)),
    "of a job of a fixed size": ({"WORLD_SIZE": "4", "RANK": "2"}, World(0, 4, 2, 4, 4)),
}


@pytest.mark.parametrize(("variables", "expected"), PLAIN.values(), ids=PLAIN)
def test_without_a_file(variables: dict[str, str], expected: World) -> None:
    assert world(variables) == expected


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "holds no world"),
    "half a world": ({"generation": 1}, "holds no world: KeyError"),
    "a list": ([1], "holds no world: TypeError"),
    "no list of members": ({**TOLD, "members": 3}, "holds no world: TypeError"),
}


@pytest.mark.parametrize(("told", "said"), BAD.values(), ids=BAD)
def test_a_file_that_is_none(tmp_path: Path, told: Any, said: str) -> None:
    with pytest.raises(SettingFault, match=said):
        world(pod(tmp_path, told))


def test_what_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingFault, match="SUBLET_WORLD_FILE: cannot be read"):
        world({**pod(tmp_path), "SUBLET_WORLD_FILE": str(tmp_path / "none")})
    with pytest.raises(SettingFault, match="SUBLET_WORLD_MEMBER: is not set"):
        world({**pod(tmp_path), "SUBLET_WORLD_MEMBER": ""})
    with pytest.raises(SettingFault, match="RANK: is 'first'"):
        world({"RANK": "first"})
