"""Every node scenario is complete, and the README tells of it."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from agent.core.observe.recording import Origin, cgroup_files
from cgroup_fixtures import make, scenarios

README = (scenarios.FOLDER / "README.md").read_text()
# Ten thousand small files take a busy disk its time.
BIG = pytest.param("v1_250_pods", marks=[pytest.mark.slow, pytest.mark.timeout(300)])
ALL = [BIG if name == "v1_250_pods" else name for name in scenarios.names()]


@pytest.fixture(scope="module")
def playback(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> scenarios.Playback:
    return scenarios.open_scenario(request.param, tmp_path_factory.mktemp("made"))


@pytest.mark.parametrize("playback", ALL, indirect=True)
def test_a_scenario_is_complete(playback: scenarios.Playback, tmp_path: Path) -> None:
    """It loads, says what it is about, and its frames are those it tells of; every frame can be laid over the last."""
    scenario = playback.scenario
    assert scenario.about and scenario.pods
    assert scenario.kernel if scenario.origin is Origin.RECORDED else not scenario.kernel
    assert scenario.layout.version == int(playback.folder.name[1])
    assert playback.frames == tuple(sorted(path.name for path in playback.folder.iterdir() if path.is_dir()))
    assert scenario.frames_seconds[0] == 0.0 and all(a < b for a, b in pairwise(scenario.frames_seconds))
    assert set(scenario.removed) <= set(playback.frames)
    for number in range(len(playback.frames)):
        playback.lay(number, tmp_path / "node")
    mount = "" if scenario.layout.version == 2 else "memory"
    assert (tmp_path / "node/sys/fs/cgroup" / mount / scenario.layout.root.strip("/") / "memory.stat").exists()
    assert (tmp_path / "node/sys/fs/cgroup/cgroup.controllers").exists() == (scenario.layout.version == 2)


@pytest.mark.parametrize(
    "playback", [name for name in ALL if name not in ("v1_surge", "v1_missing_controllers")], indirect=True
)
def test_the_first_frame_holds_all_that_a_recording_keeps(playback: scenarios.Playback) -> None:
    """What the agent begins to read must be recorded and made again; v1_surge is no more than its golden file needs."""
    layout = playback.scenario.layout
    mounts = cgroup_files(layout.version)
    wanted = [Path(mount) / layout.root.strip("/") / file for mount, files in mounts.items() for file in files]
    assert [str(path) for path in wanted if not (playback.folder / "00/sys/fs/cgroup" / path).exists()] == []


def test_a_removed_file_answers_as_the_kernel_does(tmp_path: Path) -> None:
    """Through a descriptor that was open before."""
    playback = scenarios.open_scenario("v1_pod_vanishes", tmp_path)
    playback.lay(0, tmp_path / "node")
    usage = next((tmp_path / "node/sys/fs/cgroup/cpuacct/kubepods/besteffort").glob("pod*/cpuacct.usage"))
    descriptor = os.open(usage, os.O_RDONLY)
    try:
        before = scenarios.pread(descriptor, 64, 0)
        playback.lay(1, tmp_path / "node")
        assert int(scenarios.pread(descriptor, 64, 0)) > int(before)
        playback.lay(2, tmp_path / "node")
        with pytest.raises(OSError) as gone:
            scenarios.pread(descriptor, 64, 0)
        assert gone.value.errno == errno.ENODEV
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("name", scenarios.names())
def test_the_readme_tells_of_it(name: str) -> None:
    """Under its own heading, recorded or made."""
    recorded, made = README.split("## Made", 1)
    committed = (scenarios.FOLDER / name / "scenario.toml").exists()
    is_recorded = committed and 'origin = "recorded"' in (scenarios.FOLDER / name / "scenario.toml").read_text()
    assert re.search(rf"\b{name}\b", recorded if is_recorded else made)


def test_made_scenarios_are_the_same_each_time(tmp_path: Path) -> None:
    """Same numbers, same files."""

    def digest(parent: Path) -> str:
        folder = make.make("v1_garbage", parent)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return hashlib.sha256(b"".join(str(p.relative_to(folder)).encode() + p.read_bytes() for p in paths)).hexdigest()

    assert digest(tmp_path / "one") == digest(tmp_path / "two")


def test_no_committed_scenario_is_made_again() -> None:
    """A name stands for one scenario."""
    assert not {path.name for path in scenarios.FOLDER.iterdir() if path.is_dir()} & set(make.RECIPES)


def test_a_recipe_nobody_knows_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With the names there are; and nothing is written."""
    assert make.main([str(tmp_path), "v9_unknown"]) == 2
    assert "v1_250_pods" in capsys.readouterr().err and not list(tmp_path.iterdir())
