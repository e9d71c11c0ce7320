"""Modules are charged to the package that brings them."""

from __future__ import annotations

from bench.agent.imports import ImportCost, folded, grouped


def test_modules_are_grouped_by_package_parents_first() -> None:
    """Standard library first, ours last, the rest as it was done loading; grpc's extensions are grpc's."""
    loaded = ["json", "grpc._cython", "grpc_health", "msgspec.json", "msgspec", "agent", "grpc", "model.qos", "model"]
    assert grouped(loaded) == {
        "standard library": ["json"],
        "grpc": ["grpc", "grpc_health", "grpc._cython"],
        "msgspec": ["msgspec", "msgspec.json"],
        "sublet": ["agent", "model", "model.qos"],
    }


def test_small_packages_become_one_row() -> None:
    """0.1 + 0.2 MiB and 1 + 2 ms; the large one, the first two and the last stay."""
    rows = [
        ("bare", 10.0, 0),
        ("lib", 9.0, 5),
        ("small", 0.1, 1),
        ("large", 8.0, 9),
        ("tiny", 0.2, 2),
        ("sublet", 0.2, 3),
    ]
    result = folded([ImportCost(*row) for row in rows])
    assert [cost.package for cost in result] == ["bare", "lib", "large", "2 smaller packages", "sublet"]
    assert round(result[3].mib, 6) == 0.3 and result[3].ms == 3
