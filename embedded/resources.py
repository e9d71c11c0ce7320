"""Amounts by resource name: `cpu` in milli-CPU, everything else in whole units (bytes, devices, pods)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from embedded import quantity
from embedded.fault import ConfigurationFault

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
_LARGEST = 1 << 53


class ResourceVector(msgspec.Struct, frozen=True):
    """Resource name → amount in base units; a missing name counts as 0. Arithmetic is exact."""

    amounts: Mapping[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.amounts.get(name, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self.amounts)

    def __contains__(self, name: object) -> bool:
        return name in self.amounts

    def __bool__(self) -> bool:
        return any(self.amounts.values())

    def __add__(self, other: ResourceVector) -> ResourceVector:
        return ResourceVector(
            {name: self[name] + other[name] for name in (*self, *(n for n in other if n not in self))}
        )

    def __sub__(self, other: ResourceVector) -> ResourceVector:
        return ResourceVector(
            {name: self[name] - other[name] for name in (*self, *(n for n in other if n not in self))}
        )

    def maximum(self, other: ResourceVector) -> ResourceVector:
        """The larger amount of each resource."""
        return ResourceVector({n: max(self[n], other[n]) for n in (*self, *(m for m in other if m not in self))})


def parse_resources(quantities: Mapping[str, str | int | float], where: str) -> ResourceVector:
    """Kubernetes' name → quantity map in base units. Raises ConfigurationFault naming `where` and the resource.

    An amount no machine has counts as `_LARGEST`, so that sums of many still fit 64 bits.
    """
    amounts = {}
    for name, text in quantities.items():
        try:
            amounts[name] = quantity.parse_millis(text) if name == CPU else quantity.parse_units(text)
        except quantity.QuantityError as error:
            raise ConfigurationFault(f"{where}.{name}", str(error)) from error
        if amounts[name] < 0:
            raise ConfigurationFault(f"{where}.{name}", f"{text!r} is negative", "write an amount of 0 or more")
    return countable(ResourceVector(amounts))


def countable(amounts: ResourceVector) -> ResourceVector:
    """The same, an amount that no machine has counting as `_LARGEST`: so must the sum over a pod's containers."""
    if all(amount <= _LARGEST for amount in amounts.amounts.values()):
        return amounts
    return ResourceVector({name: min(amount, _LARGEST) for name, amount in amounts.amounts.items()})
