"""Charts: what they hold, read back from SVG, where text stands as text."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.replay import plot
from cli.replay.command import Point
from cli.replay.plot import draw, require
from model.fault import ConfigurationFault
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU

GIB = 1 << 30


def points(*seconds: float, **more: int) -> list[Point]:
    """2 CPUs and 4 GiB lent at each time, 3 CPUs and 5 GiB under other settings; of 8 CPUs one is used, 4 are reserved."""
    lent = {BATCH_CPU: 2000, BATCH_MEMORY: 4 * GIB}
    would = {BATCH_CPU: 3000, BATCH_MEMORY: 5 * GIB} | more
    beside = [{CPU: cpus * 1000, MEMORY: cpus * 2 * GIB} for cpus in (8, 4, 1)]
    return [Point(1_767_225_600.0 + at, lent, would, *beside) for at in seconds]


def comments(path: Path) -> list[str]:
    """matplotlib writes letters as shapes, and each text beside them as a comment."""
    return [text.strip() for text in re.findall(r"<!--(.*?)-->", path.read_text())]


def lines(path: Path) -> int:
    """How many separate strokes the plotted lines have (two points at least; a hole begins a new one)."""
    plotted = re.findall(
        r'<g id="line2d_[0-9]+">\s*<path d="([^"]*)"[^>]*clip-path[^>]*stroke: #(?:1f4e79|c55a11)', path.read_text()
    )
    return sum(path.count("M") for path in plotted)


STACKED = ["used by services and system", "lent to batch pods", "reserved by services", "the node"]
COMPARED = ["lent", "would have been lent"]


def heights(text: str, kind: str, color: str) -> list[list[float]]:
    """The y of the points of each area or line of that colour within the axes, in the order drawn; down is more."""
    found = re.findall(rf'<path d="([^"]*)"[^>]*clip-path[^>]*style="[^"]*{kind}: {color}', text)
    return [[float(y) for y in re.findall(r"[ML] [0-9.]+ ([0-9.]+)", path)] for path in found]


@pytest.mark.parametrize(
    ("compare", "legend", "axes"),
    [
        (False, STACKED, {"CPUs", "memory (GiB)"}),
        (True, COMPARED, {"batch-cpu (CPUs)", "batch-memory (GiB)"}),
    ],
)
def test_axes_have_names_units_and_a_legend(compare: bool, legend: list[str], axes: set[str], tmp_path: Path) -> None:
    """Who sees the picture alone knows what it shows."""
    file = tmp_path / "x.svg"
    draw(points(0, 60, 120), file, compare=compare)
    told = comments(file)
    assert axes | {"time (UTC)"} <= set(told)
    assert [text for text in told if text in STACKED + COMPARED] == legend
    assert "2026-Jan-01" in "".join(told)


def test_what_is_lent_stands_on_what_is_used(tmp_path: Path) -> None:
    """Of 8 CPUs one is used and two are lent, so the areas end at an eighth and at three eighths of the node's line."""
    file = tmp_path / "x.svg"
    draw(points(0, 60, 120), file, compare=False)
    text = file.read_text()
    used, lent = (heights(text, "fill", color)[0] for color in ("#8fb0d3", "#f2b36b"))
    reserved, node = (line[0] for line in (heights(text, "stroke", "#222222")[index] for index in (0, 1)))
    floor, scale = max(used), max(used) - node
    assert min(used) == pytest.approx(floor - scale / 8, abs=0.01)
    assert (max(lent), min(lent)) == pytest.approx((floor - scale / 8, floor - 3 * scale / 8), abs=0.01)
    assert reserved == pytest.approx(floor - scale / 2, abs=0.01)


def test_a_resource_of_which_there_was_any_has_a_panel(tmp_path: Path) -> None:
    """mid-cpu only where it is lent; batch where nothing is."""
    file = tmp_path / "x.svg"
    draw(points(0, 60, **{MID_CPU: 5}), file, compare=True)
    assert "mid-cpu (CPUs)" in comments(file) and "mid-memory (GiB)" not in comments(file)
    draw([Point(0.0, {}, {})], file, compare=False)
    assert {"CPUs", "memory (GiB)"} <= set(comments(file))


def test_a_pause_of_the_agent_is_a_hole(tmp_path: Path) -> None:
    """Half a minute without a tick is not drawn over."""
    whole, broken = tmp_path / "whole.svg", tmp_path / "broken.svg"
    draw(points(0, 10, 20, 30, 40), whole, compare=True)
    draw(points(0, 10, 20, 51, 61), broken, compare=True)
    assert (lines(whole), lines(broken)) == (4, 8)


def test_one_tick_can_be_drawn(tmp_path: Path) -> None:
    """Nothing to connect, and no failure."""
    draw(points(0), tmp_path / "x.png", compare=True)
    assert (tmp_path / "x.png").stat().st_size > 1000


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is decided."""
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationFault, match=r"needs matplotlib \(pip install 'sublet\[plot\]'\)"):
        require([tmp_path / "x.png"])
    require([])


def test_nothing_of_the_folder_that_root_stands_in_is_read(tmp_path: Path) -> None:
    """Up to 3.10 matplotlib evaluates parts of a `matplotlibrc` it finds there; a relative path stays one of there."""
    root = Path(__file__).parents[3]
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 77\n")
    code = "; ".join(
        (
            f"import sys; sys.path.insert(0, {str(root)!r})",
            "from pathlib import Path; from cli.replay.plot import draw; from view.replayed import Point",
            "draw([Point(0.0, {}, {}), Point(60.0, {}, {})], Path('x.svg'), compare=False)",
            "import matplotlib; print(matplotlib.rcParams['lines.linewidth'])",
        )
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "1.5" and (tmp_path / "x.svg").is_file()
