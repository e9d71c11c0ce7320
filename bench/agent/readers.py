"""The readers that are compared. Each reads and parses every file of the same list in one pass."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from bench.agent.files import FileGroup, Form, ReadPlan

Totals = dict[str, int]


class Reader(Protocol):
    """`read` is what is timed; `totals` sums the integers of the last pass by group, and is not."""

    def open(self, plan: ReadPlan) -> None: ...

    def read(self) -> None: ...

    def totals(self) -> Totals: ...


class PlainReader:
    """Python as first written: open, read, split everything into a dictionary, in every pass."""

    def open(self, plan: ReadPlan) -> None:
        self._groups = plan.groups
        self._found: list[list[dict[str, float]]] = []

    def read(self) -> None:
        self._found = [[_PARSERS[group.form](_text(path)) for path in group.paths] for group in self._groups]

    def totals(self) -> Totals:
        return {
            group.name: sum(_wanted_sum(group, values) for values in found)
            for group, found in zip(self._groups, self._found, strict=True)
        }


class FloorReader:
    """The C loop over cached descriptors: the same system calls with next to nothing around them."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.floor_total.restype = ctypes.c_longlong

    def open(self, plan: ReadPlan) -> None:
        self._groups = plan.groups
        for group in plan.groups:
            paths, keys = _strings(group.paths), _strings(group.keys)
            form = list(Form).index(group.form)
            if error := self._library.floor_open(form, paths, len(group.paths), keys, len(group.keys)):
                raise OSError(error, os.strerror(error), group.name)

    def read(self) -> None:
        if error := self._library.floor_read():
            raise OSError(error, os.strerror(error))

    def totals(self) -> Totals:
        return {group.name: self._library.floor_total(index) for index, group in enumerate(self._groups)}


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _text(path: str) -> str:
    with open(path) as file:  # noqa: PTH123 - the plainest way there is
        return file.read()


def _number(text: str) -> dict[str, float]:
    return {"": int(text)}


def _keyed(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in text.splitlines():
        key, value = line.split()
        found[key] = int(value)
    return found


def _pressure(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for line in text.splitlines():
        kind, *fields = line.split()
        for field in fields:
            key, value = field.split("=")
            found[f"{kind} {key}"] = int(value) if key == "total" else float(value)
    return found


_PARSERS: dict[Form, Callable[[str], dict[str, float]]] = {
    Form.NUMBER: _number,
    Form.KEYED: _keyed,
    Form.PRESSURE: _pressure,
}


def _wanted_sum(group: FileGroup, values: dict[str, float]) -> int:
    wanted = {Form.NUMBER: ("",), Form.KEYED: group.keys, Form.PRESSURE: ("some total", "full total")}[group.form]
    return sum(int(values.get(key, 0)) for key in wanted)
