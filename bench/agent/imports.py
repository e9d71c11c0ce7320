"""Costs of the agent's imports before it does anything: memory and time, package by package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

import msgspec

from bench.agent.observe import BenchFault

_ROOT = Path(__file__).parents[2]
_OWN = ("model", "kube", "wire", "agent")
_RUNS = 3
# Smaller packages are shown as one.
_SMALL_MIB = 0.3

# Module names in the order in which they were done loading, so that a package comes after what it needs.
_LIST = """
import sys
bare = set(sys.modules)
import agent.__main__, agent.run.wiring, agent.run.services, agent.edge.podlinks, kube.transport
print(*(name for name, module in sys.modules.items() if name not in bare and getattr(module, "__spec__", None)))
"""

# Reads groups of module names, one a line, and answers resident KiB gained and seconds taken by each.
_REPLAY = """
import importlib, resource, sys, time
from kube.packages import defer_init
# As the agent itself loads them.
sys.modules["rich"] = None
defer_init("kubernetes", "kubernetes.aio", "kubernetes.aio.config", "pyroute2")
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1024
lines = sys.stdin.read().splitlines()
print(resident(), 0)
for line in lines:
    before, begun = resident(), time.perf_counter()
    circular = []
    for name in line.split():
        try:
            importlib.import_module(name)
        except ImportError:
            circular.append(name)
    for name in circular:
        importlib.import_module(name)
    print(resident() - before, time.perf_counter() - begun)
"""


class ImportCost(msgspec.Struct, frozen=True):
    """What importing one package added, after everything above it in the list was there."""

    package: str
    mib: float
    ms: float


def measure_imports() -> list[ImportCost]:
    """The bare interpreter, the standard library, then third-party packages in the order the agent imports them, then
    ours. Each is the median of three fresh interpreters. Raises BenchFault where the agent cannot be imported."""
    groups = grouped(_python(_LIST).split())
    runs = [_python(_REPLAY, "\n".join(" ".join(names) for names in groups.values())) for _ in range(_RUNS)]
    columns = zip(*(run.splitlines() for run in runs), strict=True)
    costs = [
        ImportCost(
            package,
            median(float(cell.split()[0]) for cell in cells) / 1024,
            median(float(cell.split()[1]) for cell in cells) * 1000,
        )
        for package, cells in zip(("bare interpreter", *groups), columns, strict=True)
    ]
    return folded(costs)


def grouped(modules: list[str]) -> dict[str, list[str]]:
    """Modules by package, parents before children: the standard library, packages as they were done loading, ours."""
    packages = [_group(module) for module in modules if "." not in module]
    groups: dict[str, list[str]] = {name: [] for name in ("standard library", *packages)}
    groups["sublet"] = groups.pop("sublet", [])
    for module in sorted(modules, key=lambda name: (name.count("."), name != _group(name))):
        groups[_group(module)].append(module)
    return groups


def folded(costs: list[ImportCost]) -> list[ImportCost]:
    """Small third-party packages as one row before ours."""
    first, library, *packages, ours = costs
    large = [cost for cost in packages if cost.mib >= _SMALL_MIB]
    small = [cost for cost in packages if cost.mib < _SMALL_MIB]
    rest = ImportCost(f"{len(small)} smaller packages", sum(c.mib for c in small), sum(c.ms for c in small))
    return [first, library, *large, *([rest] if small else []), ours]


def _group(module: str) -> str:
    package = module.split(".")[0]
    # grpc imports its extensions itself, where they are installed, before it is done.
    if package.startswith("grpc_"):
        return "grpc"
    if package in _OWN:
        return "sublet"
    return "standard library" if package in sys.stdlib_module_names else package


def _python(code: str, given: str = "") -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=_ROOT, input=given, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise BenchFault("agent", f"cannot be imported: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return done.stdout
