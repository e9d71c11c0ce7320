"""What a field of a pod means stands beside the field."""

from __future__ import annotations

import ast
import inspect

import pytest
from msgspec import Struct

from model.pod.colocation import Colocation, EvictionTerms, LoadTerms
from model.pod.pod import Pod
from model.pod.spec import Container, PodSpec, Toleration
from model.pod.status import PodStatus

PARTS = (Pod, PodSpec, PodStatus, Colocation, Container, Toleration, EvictionTerms, LoadTerms)


@pytest.mark.parametrize("part", PARTS)
def test_each_field_is_followed_by_its_docstring(part: type[Struct]) -> None:
    """One docstring a field; nobody looks for it in a paragraph."""
    (definition,) = ast.parse(inspect.getsource(part)).body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body
    fields = [number for number, each in enumerate(body) if isinstance(each, ast.AnnAssign)]
    documented = [
        number
        for number in fields
        if isinstance(after := body[number + 1], ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    ]
    assert fields == documented and len(fields) == len(part.__struct_fields__)


def test_a_field_is_in_one_part() -> None:
    """A pod's fields keep different names, so that a name says what it means without its part."""
    names = [name for part in (Pod, PodSpec, PodStatus, Colocation) for name in part.__struct_fields__]
    assert len(names) == len(set(names))
