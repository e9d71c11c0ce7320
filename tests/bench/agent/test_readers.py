"""Every reader finds the same sums in the same files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bench import native
from bench.agent.files import FileGroup, Form, ReadPlan
from bench.agent.observe import ReaderProcess
from bench.agent.reader_process import ReadRequest

MEMORY_STAT = (
    "cache 5\ninactive_anon 1\ntotal_cache 7\ntotal_inactive_anon 100\ntotal_active_anon 20\ntotal_unevictable 3\n"
)
PRESSURE = "some avg10=1.25 avg60=0.31 avg300=12.50 total=4692696\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=304\n"
# name, form, keys, contents of two files, sum worked by hand
CASES = (
    ("cpuacct.usage", Form.NUMBER, (), ("120\n", "9000000000\n"), 9_000_000_120),
    # 100 + 20 + 3, twice; keys that only begin or end alike do not count
    (
        "memory.stat",
        Form.KEYED,
        ("total_inactive_anon", "total_active_anon", "total_unevictable"),
        (MEMORY_STAT, MEMORY_STAT),
        246,
    ),
    (
        "cpu.stat",
        Form.KEYED,
        ("nr_periods", "nr_throttled"),
        ("nr_periods 40\nnr_throttled 2\nthrottled_time 9\n", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
        42,
    ),
    # both lines of both files: 2 x (4692696 + 304); averages are parsed and not summed
    ("cpu.pressure", Form.PRESSURE, (), (PRESSURE, PRESSURE), 9_386_000),
)
SUMS = {case[0]: case[4] for case in CASES}


def plan(folder: Path) -> Path:
    """A plan of ordinary files, which descriptors read just as well."""
    groups = []
    for name, form, keys, contents, _ in CASES:
        paths = [folder / f"{name}-{number}" for number in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content)
        groups.append(FileGroup(name, form, tuple(map(str, paths)), keys))
    written = folder / "plan.json"
    written.write_bytes(msgspec.json.encode(ReadPlan(1, str(folder), {}, tuple(groups))))
    return written


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | native.NotBuilt]:
    """Compiled once for all tests here."""
    folder = tmp_path_factory.mktemp("built")
    return {"floor": native.build_floor(folder), "go": native.build_go(folder)}


@pytest.fixture(params=["plain", "floor", "go"])
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, built: dict[str, Path | native.NotBuilt]
) -> Iterator[ReaderProcess]:
    name, asked = request.param, str(plan(tmp_path))
    native_code = built.get(name, Path())
    if isinstance(native_code, native.NotBuilt):
        pytest.skip(native_code.why)
    python = [sys.executable, "-m", "bench.agent.reader_process", name, asked, str(native_code)]
    with ReaderProcess(name, [str(native_code), asked] if name == "go" else python) as started:
        yield started


def test_a_reader_sums_what_is_wanted_and_tells_its_cpu_time(reader: ReaderProcess) -> None:
    """One pass or several: the sums are those of the last pass, and reading is never free."""
    for passes in (1, 3):
        answer = reader.ask(ReadRequest(passes))
        assert answer.totals == SUMS
        assert answer.cpu_ns > 0


def test_a_reader_sees_what_changed(reader: ReaderProcess, tmp_path: Path) -> None:
    """No reader answers from memory."""
    reader.ask(ReadRequest(1))
    (tmp_path / "cpuacct.usage-0").write_text("121\n")
    assert reader.ask(ReadRequest(1)).totals == {**SUMS, "cpuacct.usage": SUMS["cpuacct.usage"] + 1}


def test_a_failed_build_is_a_reason(tmp_path: Path) -> None:
    """The benchmark goes on without the reader and says why."""
    result = native._built(tmp_path / "x", [sys.executable, "-c", "raise SystemExit('no such flag')"], tmp_path)
    assert isinstance(result, native.NotBuilt) and "no such flag" in result.why
