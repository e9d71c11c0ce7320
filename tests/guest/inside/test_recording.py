"""`sublet record` on real cgroup v2."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from agent.core.observe.recording import cgroup_files
from agent.record import NodeFiles, RecordedFolders, RecordPace, record, started
from cgroup_fixtures.scenarios import Playback


def test_a_recording_plays_back_what_the_kernel_said(pods: Any, tmp_path: Path) -> None:
    """A busy container's counters move between the frames, and one that vanishes is removed."""
    pods.tree.run(pods.best_effort, "while True: pass")
    node = NodeFiles(RecordedFolders(kubepods=pods.root))

    pauses: list[float] = []

    def pause(seconds: float) -> None:
        time.sleep(seconds)
        pauses.append(seconds)
        if len(pauses) == 2:
            pods.tree.folder(pods.burstable).rmdir()

    record(
        node, started(node, pods.root, "guest", ""), RecordPace(2, 0.5, time.monotonic, pause), tmp_path / "scenario"
    )
    recorded = Playback(tmp_path / "scenario")
    assert recorded.scenario.layout.version == 2 and recorded.scenario.kernel.endswith("-cloud-amd64")
    played = tmp_path / "played"
    usage = played / f"sys/fs/cgroup{pods.best_effort}/cpu.stat"
    recorded.lay(0, played)
    before = usage.read_bytes()
    assert {path.name for path in (played / f"sys/fs/cgroup{pods.burstable}").iterdir()} == set(cgroup_files(2)[""])
    recorded.lay(1, played)
    assert usage.read_bytes() != before
    assert not (played / f"sys/fs/cgroup{pods.burstable}").exists()
