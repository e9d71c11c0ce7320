"""Amounts of a queue as they are written, into cells; which of them may not exceed which.

All dialects know three amounts of a resource: what is never lent, what is the queue's own, and what it never passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import checked
from kube.objects import Quantities
from model import quantity
from model.fault import ConfigurationFault
from model.queue import NO_FLAVOR, Cell, QuotaCell
from model.resources import amount_text, divisible, parse_resources

GPU = "nvidia.com/gpu"
"""What `gpu` stands for where a field counts GPUs."""

Amounts = Mapping[str, int]
"""Resource name → amount in base units."""


class Written(msgspec.Struct, frozen=True):
    """The amounts of one field of a queue: `field` is its path below the object."""

    field: str
    amounts: Amounts = {}


def written(raw: object, field: str, where: str) -> Written:
    """A map of quantities. Raises ConfigurationFault naming the object `where`, the field and the resource."""
    if raw is None:
        return Written(field)
    found = checked(raw, Quantities, f"{where}: {field}")
    amounts = parse_resources(found, f"{where}: {field}").amounts
    for name, text in found.items():
        if not divisible(name) and quantity.parse(text).denominator != 1:
            told = f"is {text}, and it is counted in whole ones"
            raise ConfigurationFault(f"{where}: {field}.{name}", told, "write a whole number")
    return Written(field, amounts)


def require_order(where: str, *ascending: Written) -> None:
    """Raises ConfigurationFault where one of the amounts is more than a later one of the same resource."""
    for index, low in enumerate(ascending):
        for high in ascending[index + 1 :]:
            for name in low.amounts:
                if name in high.amounts and low.amounts[name] > high.amounts[name]:
                    less, more = amount_text(high.amounts[name], name), amount_text(low.amounts[name], name)
                    told = f"is {more}, more than {high.field} {less}"
                    fix = f"lower it, or raise {high.field}.{name}"
                    raise ConfigurationFault(f"{where}: {low.field}.{name}", told, fix)


def cells_of(resources: Iterable[str], cells: Mapping[str, QuotaCell]) -> Mapping[Cell, QuotaCell]:
    """Cells of queues without flavours, in the order of their names; resources without a cell are left out."""
    return {(NO_FLAVOR, name): cells[name] for name in sorted(set(resources)) if name in cells}


def whole(raw: Any, default: int, least: int, field: str, where: str) -> int:
    """A whole number of at least `least`, `default` where it is not written. Raises ConfigurationFault."""
    if raw is None:
        return default
    if isinstance(raw, bool) or not isinstance(raw, int) or not least <= raw < 1 << 31:
        told = f"is {repr(raw)[:60]}"
        raise ConfigurationFault(f"{where}: {field}", told, f"write a whole number of {least} or more")
    return raw
