"""From an image and a command to a program of this machine.

The image is only a label: no file system comes with it. `python` images run the interpreter this node runs on;
`busybox`, `alpine`, `ubuntu`, `debian` and `bash` mean the machine's own programs; `pause` sleeps. A container of any
other image runs if its command is found on this machine.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from embedded.node.objects.environment import SEARCH_PATH, expand_all
from embedded.node.objects.pod import PodContainer

_HOST_FAMILIES = ("busybox", "alpine", "ubuntu", "debian", "bash")
_REFERENCE = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::[\w][\w.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]+)?\Z"
)
_PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")

Which = Callable[[str, str], str | None]


class Refused(msgspec.Struct, frozen=True):
    """The container stays Waiting with this reason."""

    reason: str
    message: str


class Missing(msgspec.Struct, frozen=True):
    """The program does not exist: the container ends at once with StartError, as runc reports it."""

    message: str


def family(image: str) -> str:
    """`docker.io/library/python:3.9` → `python`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def search_path(image: str) -> str:
    """PATH of a container: for python images this interpreter's directory comes first."""
    return f"{Path(sys.executable).parent}:{SEARCH_PATH}" if family(image) == "python" else SEARCH_PATH


def find_from(directory: Path, on_machine: Callable[[Path], Path] = lambda path: path) -> Which:
    """A search for programs; a name with a slash is taken from `directory`.

    `on_machine` says where a path of the container is on this machine: a volume may bring the program.
    """

    def find(program: str, path: str) -> str | None:
        places = [directory] if "/" in program else [directory / each for each in path.split(":")]
        candidates = (place / program for place in places)
        return next((str(each) for each in candidates if shutil.which(str(on_machine(each)))), None)

    return find


def resolve(
    container: PodContainer, declared: dict[str, str], find: Callable[[str], str | None]
) -> list[str] | Refused | Missing:
    """The argument vector to execute, its first item an existing program; `declared` is what `$(NAME)` stands for."""
    if not _REFERENCE.match(container.image):
        return Refused("InvalidImageName", f'couldn\'t parse image name "{container.image}"')
    words = expand_all([*(container.command or []), *(container.args or [])], declared)
    known = family(container.image) in (*_HOST_FAMILIES, "python")
    if not container.command and family(container.image) == "pause":
        words = ["sleep", "infinity"]
    elif not words or (not container.command and not known):
        return Refused(
            "CreateContainerError",
            f'image "{container.image}" is not pulled, so its default command is unknown to the process node: '
            "write command in the container",
        )
    program = _program(words[0], find)
    if program is None:
        return Missing(f'exec: "{words[0]}": executable file not found in $PATH')
    return [program, *words[1:]]


def _program(name: str, find: Callable[[str], str | None]) -> str | None:
    return find(name) or (sys.executable if _PYTHON.match(name) else None)
