"""A trace is read from plain and packed CSV; what is wrong is named with file, line, column and fix."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from local.simnodes.trace import read_trace
from local.simnodes.usage import UsageShare
from model.fault import ConfigurationFault

TEXT = """\
machine,t_s,cpu_pct,mem_pct,disk_io_pct
m_1,600,50,90,7
m_1,540,40,,7
m_1,480,20,80,7
m_2,0,5,6,7
"""


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_read(tmp_path: Path, packed: bool) -> None:
    """In time's order, from each machine's own first row, other columns ignored, rows with gaps left out."""
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    load = read_trace(path)
    assert [load.at(0, at) for at in (0.0, 119.0)] == [UsageShare(0.2, 0.8), UsageShare(0.2, 0.8)]
    assert load.at(1, 7.0) == UsageShare(0.05, 0.06)


@pytest.mark.parametrize(
    ("case", "content", "words"),
    [
        ("no such column", b"machine,t_s,cpu_pct\nm,0,1\n", ("line 1", "mem_pct", "names the columns")),
        ("not a number", b"machine,t_s,cpu_pct,mem_pct\nm,0,x,1\n", ("line 2", "column cpu_pct", "'x'", "number")),
        ("not a time", b"machine,t_s,cpu_pct,mem_pct\nm,nan,1,1\n", ("line 2", "column t_s", "'nan'")),
        ("more than all", b"machine,t_s,cpu_pct,mem_pct\nm,0,1,1\nm,9,1,101\n", ("line 3", "mem_pct", "0 to 100")),
        ("no rows", b"machine,t_s,cpu_pct,mem_pct\n", ("no row",)),
        ("empty", b"", ("line 1", "machine")),
        ("not text", b"\xff\xfe\x00", ("cannot be read",)),
        ("broken gzip", gzip.compress(TEXT.encode(), mtime=0)[:-12], ("cannot be read",)),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, case: str, content: bytes, words: tuple[str, ...]) -> None:
    """One line."""
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigurationFault) as fault:
        read_trace(path)
    assert str(path) in str(fault.value), case
    for word in words:
        assert word in str(fault.value), case


def test_no_file(tmp_path: Path) -> None:
    """With the system's words."""
    with pytest.raises(ConfigurationFault, match="No such file"):
        read_trace(tmp_path / "none")
