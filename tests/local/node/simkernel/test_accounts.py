"""The agent's own parsers read what is written, and a file never changes its length."""

from __future__ import annotations

from agent.core.observe.files import V2_FILES, FilePart
from local.node.simkernel.accounts import Account

FULL = Account(
    cpu_us=5_000_000, periods=7, throttled=3, throttled_us=9, memory_bytes=4096, processes=2, high=1, oom_kill=1
)


def test_every_file_parses() -> None:
    """By the table the agent reads cgroup v2 with."""
    texts = FULL.texts()
    read = {kind.part: kind.parse(texts[kind.file].encode()) for kind in V2_FILES if kind.file in texts}
    assert {FilePart.CPU, FilePart.LEVEL, FilePart.MEMORY, FilePart.OOM} <= read.keys()
    cpu_ns, throttling = read[FilePart.CPU]
    assert cpu_ns == 5_000_000_000 and (throttling.throttled, throttling.throttled_us) == (3, 9)
    assert read[FilePart.MEMORY] == (4096, 0) and read[FilePart.OOM].oom_kill == 1


def test_lengths_stay() -> None:
    """Whatever the numbers are."""
    assert [len(text) for text in FULL.texts().values()] == [len(text) for text in Account().texts().values()]


def test_continued() -> None:
    """A new simulator goes on from the files of the last one, or from nothing."""
    texts = FULL.texts()
    again = Account.continued(texts["cpu.stat"], texts["memory.events"])
    assert (again.cpu_us, again.throttled, again.oom_kill) == (5_000_000, 3, 1)
    assert Account.continued("", "").cpu_us == 0
