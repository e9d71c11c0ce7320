"""Which taints tolerations let a pod pass."""

from __future__ import annotations

import pytest

from model.node import Taint, TaintEffect
from model.pod.spec import Toleration, TolerationOperator, Tolerations

EXISTS = TolerationOperator.EXISTS
TAINT = Taint("gpu", "a100", TaintEffect.NO_SCHEDULE)
CASES: dict[str, tuple[tuple[Toleration, ...], bool]] = {
    "none": ((), False),
    "its key and value": ((Toleration("gpu", value="a100"),), True),
    "another value": ((Toleration("gpu", value="v100"),), False),
    "its key, whatever the value": ((Toleration("gpu", EXISTS),), True),
    "all taints": ((Toleration("", EXISTS),), True),
    "no key with a value": ((Toleration("", value="a100"),), False),
    "its effect": ((Toleration("gpu", EXISTS, "", TaintEffect.NO_SCHEDULE),), True),
    "another effect": ((Toleration("gpu", EXISTS, "", TaintEffect.NO_EXECUTE),), False),
    "any of several": ((Toleration("cpu", EXISTS), Toleration("gpu", EXISTS)), True),
}


@pytest.mark.parametrize(("tolerations", "allowed"), CASES.values(), ids=CASES)
def test_tolerations(tolerations: tuple[Toleration, ...], allowed: bool) -> None:
    assert Tolerations(tolerations).allow(TAINT) == allowed
