"""The table of `sublet simulate node` says how best effort is limited and who is evicted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cli.main import main
from tests.cli.simulate.test_node import Object, pod, slo, usage
from tests.cli.simulate.test_node_decisions import CPUSET, FULL, NOW, TOLD, batch, big, measured

Table = Callable[..., list[str]]


@pytest.fixture
def table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Table:
    """The lines about limits and evictions, their words apart by one space."""

    def printed(*documents: Object, version: int = 2) -> list[str]:
        (tmp_path / "f").write_text(yaml.safe_dump_all(documents))
        options = ["--now", NOW, "--cgroup-version", str(version)]
        assert main(["simulate", "node", "-f", str(tmp_path / "f"), *options]) == 0
        lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
        return lines[lines.index("limits written on an untouched node") :]

    return printed


def test_the_ceiling_has_a_line_a_term(table: Table) -> None:
    """In CPUs, with why and what each term is."""
    lines = table(big(), pod(), batch(), measured())
    at = lines.index("/kubepods/besteffort")
    assert lines[at + 1].startswith("cpu.max 9.500 CPUs policy adaptive; ")
    assert lines[at + 2].startswith("capacity +10.000 CPUs")
    assert lines[at + 5].startswith("online used -1.500 CPUs")
    assert lines[at + 6].startswith("within requests +1.500 CPUs")


def test_a_pod_has_a_line_a_cgroup(table: Table) -> None:
    """Whose it is, and all it gets; what does not follow from what it asked for says so."""
    lines = table(big(), batch(uid="u", memory="1Gi"), measured())
    at = lines.index("/kubepods/besteffort/podu/a pod shop/job, container a")
    assert lines[at + 1] == "cpu.max 2.000 CPUs, cpu.weight 79, memory.max 1.000 GiB"
    at = lines.index("/kubepods/besteffort/podu pod shop/job")
    assert lines[at + 1].startswith("cpu.max 2.000 CPUs, cpu.weight 79, memory.max 3.")
    assert lines[at + 1].endswith("GiB (InUseAlready)")


def test_what_an_untouched_node_holds_already_is_left_out(table: Table) -> None:
    """The root's weight is the kernel's smallest from the start."""
    assert not [line for line in table(big(), measured()) if line.startswith("cpu.weight")]


def test_a_list_of_cpus(table: Table) -> None:
    """As the file takes it."""
    lines = table(big(), pod(), batch(), measured(), CPUSET)
    assert any(line.startswith("cpuset.cpus 0-3 policy cpuset; ") for line in lines)


@pytest.mark.parametrize(
    ("case", "objects", "expected"),
    [
        ("switched off", [measured(), slo(enable=False)], "suppression is switched off"),
        ("no NodeMetric", [], "no usage of the node is known yet"),
    ],
)
def test_why_there_is_no_ceiling(case: str, objects: list[Object], expected: str, table: Table) -> None:
    """In words."""
    assert expected in next(line for line in table(big(), *objects) if line.startswith("no ceiling of CPU: "))


def test_an_eviction_and_what_is_missing(table: Table) -> None:
    """Victims, why, and the need behind them."""
    lines = table(big(), batch("big", **TOLD), FULL)
    at = lines.index("evictions, in order")
    assert lines[at + 1].startswith("shop/big 30.000 GiB told 20 s before; the node uses too much memory")
    assert lines[at + 2].startswith("memory to free 9.000 GiB policy BEMemoryEvict; ")
    assert lines[at + 3].startswith("used +77.000 GiB")


@pytest.mark.parametrize(
    ("case", "objects", "expected"),
    [
        ("within the threshold", [measured()], ["no pod is evicted", "memory to free 0.000 GiB policy BEMemoryEvict; within its threshold"]),
        ("no possible victim", [measured("77Gi", web=usage(1, "70Gi"))], ["no pod is evicted", "no pod that may be evicted frees what is missing"]),
        ("switched off", [measured("77Gi"), slo(enable=False)], ["no pod is evicted: no rule is on"]),
        ("no NodeMetric", [], ["no pod is evicted", "no usage of the node is known yet"]),
    ],
)  # fmt: skip
def test_why_nobody_is_evicted(case: str, objects: list[Object], expected: list[str], table: Table) -> None:
    """That, and how far the threshold is."""
    lines = table(big(), pod(), *objects)
    at = next(index for index, line in enumerate(lines) if line.startswith("no pod is evicted"))
    assert all(text in line for text, line in zip(expected, lines[at:], strict=False))
