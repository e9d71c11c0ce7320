"""Fields that nobody reads are found, at any depth."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.documents.spelling import unknown_fields


class Inner(msgspec.Struct):
    depth: int = 0


class One(msgspec.Struct, rename="camel"):
    cpu_share: int | None = None
    inner: Inner | None = None
    many: list[Inner] | None = None
    free: dict[str, Inner] | None = None
    anything: Any = None


class Other(msgspec.Struct):
    enable: bool = False


CASES: dict[str, tuple[Any, list[str]]] = {
    "all known": ({"cpuShare": 1, "enable": True, "inner": {"depth": 1}}, []),
    "known in other letters": ({"CPUSHARE": 1}, []),
    "one letter off": ({"cpuShares": 1}, ["x: nothing reads 'cpuShares'; did you mean 'cpuShare'?"]),
    "of the other type": ({"enabled": 1}, ["x: nothing reads 'enabled'; did you mean 'enable'?"]),
    "like nothing": ({"zzz": 1}, ["x: nothing reads 'zzz'"]),
    "in an object": ({"inner": {"deep": 1}}, ["x.inner: nothing reads 'deep'; did you mean 'depth'?"]),
    "in a list": ({"many": [{}, {"q": 1}]}, ["x.many[1]: nothing reads 'q'"]),
    "in a free map": ({"free": {"any": {"q": 1}}}, ["x.free.any: nothing reads 'q'"]),
    "where anything goes": ({"anything": {"q": 1}}, []),
    "of a wrong type": ({"inner": 5, "many": {}}, []),
    "no object": ([], []),
}


@pytest.mark.parametrize(("raw", "sentences"), CASES.values(), ids=CASES)
def test_unknown_fields(raw: Any, sentences: list[str]) -> None:
    """One sentence each, with the likely name."""
    assert list(unknown_fields(raw, (One, Other), "x")) == sentences
