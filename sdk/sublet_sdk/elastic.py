"""World: the pods that train together at this moment, as an elastic TrainingJob tells its processes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sublet_sdk.faults import SettingFault

WORLD_FILE = "SUBLET_WORLD_FILE"
WORLD_MEMBER = "SUBLET_WORLD_MEMBER"
_GIVE = "run as a TrainingJob with spec.elasticConfig, whose pods have this file"


@dataclass(frozen=True)
class World:
    """`size` pods train together, `members` by name in the order of their ranks; no fewer than `minimum` and no more
    than `maximum` ever do. Each change of who they are, or of a process in its place, is another `generation`.

    `rank` is this pod's place among them; None while it is not one of them, as just before it counts and once it is to
    go.
    """

    generation: int
    size: int
    rank: int | None
    minimum: int
    maximum: int
    members: tuple[str, ...] = ()


def world(variables: Mapping[str, str] = os.environ) -> World:
    """As it is now. Costs the reading of a small file: call it between two steps.

    A process of a job whose size does not change has generation 0, and its size and rank from `WORLD_SIZE` and `RANK`.

    :raises SettingFault: a variable or the file cannot be used
    """
    name = variables.get(WORLD_FILE, "").strip()
    if not name:
        size, rank = _whole(variables, "WORLD_SIZE", 1), _whole(variables, "RANK", 0)
        return World(0, size, rank, size, size)
    member = variables.get(WORLD_MEMBER, "").strip()
    if not member:
        raise SettingFault(WORLD_MEMBER, "is not set", "set it to the name of this pod")
    try:
        return _world(json.loads(Path(name).read_text()), member)
    except OSError as error:
        raise SettingFault(WORLD_FILE, f"cannot be read: {error}", _GIVE) from error
    except (ValueError, KeyError, TypeError) as error:
        raise SettingFault(WORLD_FILE, f"{name} holds no world: {error!r}", _GIVE) from error


def _world(told: Any, member: str) -> World:
    members = tuple(str(each) for each in told["members"])
    rank = members.index(member) if member in members else None
    numbers = (int(told[name]) for name in ("generation", "minimum", "maximum"))
    generation, minimum, maximum = numbers
    return World(generation, len(members), rank, minimum, maximum, members)


def _whole(variables: Mapping[str, str], name: str, otherwise: int) -> int:
    text = variables.get(name, "").strip() or str(otherwise)
    if not (text.isascii() and text.isdigit()):
        raise SettingFault(name, f"is {text!r}", "give a whole number of 0 or more")
    return int(text)
