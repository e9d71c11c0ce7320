"""ResourceVector: amounts by resource name, in base units.

Base units: `cpu` in milli-CPU; `kubernetes.io/batch-cpu` and `mid-cpu` as the plain integer Kubernetes stores,
which Koordinator defines as milli-CPU too; everything else in whole units (bytes, devices, pods).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from model import quantity
from model.fault import ConfigurationFault

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
BATCH_CPU = "kubernetes.io/batch-cpu"
BATCH_MEMORY = "kubernetes.io/batch-memory"
MID_CPU = "kubernetes.io/mid-cpu"
MID_MEMORY = "kubernetes.io/mid-memory"
_LARGEST = 1 << 53
_BYTES = ("memory", "storage", "hugepages-")


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


def divisible(resource: str) -> bool:
    """Whether there is less than one of it: of CPUs, and of what is counted in bytes, which a fraction rounds up to."""
    return resource == CPU or any(word in resource for word in _BYTES)


def amount_text(amount: int, resource: str) -> str:
    """An amount in base units as Kubernetes prints one of this resource: `1500m`, `4Gi`, `8`."""
    if resource == CPU:
        return quantity.format_millis(amount)
    return quantity.format_bytes(amount) if divisible(resource) else str(amount)


def countable(amounts: ResourceVector) -> ResourceVector:
    """The same, an amount that no machine has counting as `_LARGEST`: so must the sum over a pod's containers."""
    if all(amount <= _LARGEST for amount in amounts.amounts.values()):
        return amounts
    return ResourceVector({name: min(amount, _LARGEST) for name, amount in amounts.amounts.items()})
