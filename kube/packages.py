"""Packages imported without what their `__init__` loads beside the parts that are used: a program on every node pays
for each module with memory, and with the CPU time of its start.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any


def defer_init(*names: str) -> None:
    """Let submodules of these packages be imported while `__init__` runs only once a name of its own is asked for.

    A parent comes before its children. A package that is loaded already, or is not installed, is left alone.
    """
    for name in names:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None:
            continue
        package = importlib.util.module_from_spec(spec)
        package.__dict__["__getattr__"] = _asked(package)
        sys.modules[name] = package
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, package)


def _asked(package: ModuleType) -> Callable[[str], Any]:
    """The package's `__getattr__` (PEP 562): a submodule of that name, else what `__init__` defines."""

    def getattr_(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{package.__name__}.{name}")
        spec = package.__spec__
        if package.__dict__.pop("__getattr__", None) is None or spec is None or spec.loader is None:
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        spec.loader.exec_module(package)
        return getattr(package, name)

    return getattr_


@contextlib.contextmanager
def hidden(name: str) -> Iterator[None]:
    """Within, `name` looks as if it were not installed; one that is loaded already stays visible."""
    if name in sys.modules:
        yield
        return
    # Documented for this purpose: https://docs.python.org/3.11/reference/import.html#the-module-cache
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(name, None)
