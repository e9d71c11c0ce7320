"""What one entry of the conformance list is: a name, the page that promises it, and a body to run."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embedded.tests.conformance.case import Case

Body = Callable[["Case"], None]


class Via(enum.Flag):
    """The kinds of client."""

    NONE = 0
    RAW = enum.auto()
    PYTHON = enum.auto()
    KUBECTL = enum.auto()
    CODE = RAW | PYTHON
    ALL = RAW | PYTHON | KUBECTL


@dataclass(frozen=True)
class Behaviour:
    """One promise of the Kubernetes API.

    `via` are the clients it is checked through, `fast` those of them that every `make test` runs; `needs` is
    a part of a cluster that a bare API server lacks: `controllers` or a group such as `metrics.k8s.io`.
    """

    name: str
    page: str
    via: Via
    fast: Via
    needs: str
    run: Body


BEHAVIOURS: list[Behaviour] = []


def behaviour(
    page: str, via: Via = Via.ALL, fast: Via = Via.CODE, needs: str = "", name: str = ""
) -> Callable[[Body], Body]:
    """Enters a body into the list; its name is the function's unless given."""

    def enter(run: Body) -> Body:
        BEHAVIOURS.append(Behaviour(name or run.__name__.replace("_", " "), page, via, via & fast, needs, run))
        return run

    return enter
