"""Reads a trace of machines' use: CSV with a header line, plain or gzip.

Columns `machine,t_s,cpu_pct,mem_pct`; others are ignored, and rows with an empty cell among these are not known.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from local.simnodes.usage import TraceLoad, TraceSeries, UsageShare
from model.fault import ConfigurationFault

_COLUMNS = ("machine", "t_s", "cpu_pct", "mem_pct")
_GZIP = b"\x1f\x8b"


def read_trace(path: Path) -> TraceLoad:
    """Raises ConfigurationFault naming file, line and column."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            with io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if packed else raw, "utf-8", newline="") as text:
                return TraceLoad(_machines(text, path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise ConfigurationFault(f"--trace {path}", f"cannot be read: {what}", "a CSV file, or one in gzip") from error


def _machines(text: TextIO, path: Path) -> list[TraceSeries]:
    rows: dict[str, list[tuple[float, UsageShare]]] = {}
    for machine, seconds, share in _rows(text, path):
        rows.setdefault(machine, []).append((seconds, share))
    if not rows:
        raise ConfigurationFault(f"--trace {path}", "has no row with all of " + ",".join(_COLUMNS), "add some")
    return [_series(found) for found in rows.values()]


def _rows(text: TextIO, path: Path) -> Iterator[tuple[str, float, UsageShare]]:
    reader = csv.DictReader(text)
    try:
        missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            fix = f"the first line names the columns, {','.join(_COLUMNS)} among them"
            raise ConfigurationFault(f"{path} line 1", f"column {missing[0]} is missing", fix)
        for row in reader:
            cells = [row[column] for column in _COLUMNS]
            if all(cells):
                where = f"{path} line {reader.line_num}"
                seconds, cpu, memory = (_number(row[column], column, where) for column in _COLUMNS[1:])
                yield (
                    row["machine"],
                    seconds,
                    UsageShare(_share(cpu, "cpu_pct", where), _share(memory, "mem_pct", where)),
                )
    except csv.Error as error:
        raise ConfigurationFault(f"{path} line {reader.line_num}", f"is not CSV: {error}", "one row a line") from error


def _number(text: str, column: str, where: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e12:
        raise ConfigurationFault(f"{where}: column {column}", f"{text!r} is no amount", "write a number of 0 or more")
    return found


def _share(pct: float, column: str, where: str) -> float:
    if pct > 100:
        raise ConfigurationFault(
            f"{where}: column {column}", f"{pct:g} is more than all", "write a percentage, 0 to 100"
        )
    return pct / 100


def _series(found: list[tuple[float, UsageShare]]) -> TraceSeries:
    found.sort(key=lambda row: row[0])
    first = found[0][0]
    return TraceSeries([seconds - first for seconds, _ in found], [share for _, share in found])
