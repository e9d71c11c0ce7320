"""A file never changes its length, and a new simulator reads what the last one wrote."""

from __future__ import annotations

from embedded.simkernel.accounts import Account

FULL = Account(
    cpu_us=5_000_000, periods=7, throttled=3, throttled_us=9, memory_bytes=4096, processes=2, high=1, oom_kill=1
)


def test_lengths_stay() -> None:
    """Whatever the numbers are."""
    assert [len(text) for text in FULL.texts().values()] == [len(text) for text in Account().texts().values()]


def test_continued() -> None:
    """A new simulator goes on from the files of the last one, or from nothing."""
    texts = FULL.texts()
    again = Account.continued(texts["cpu.stat"], texts["memory.events"])
    assert (again.cpu_us, again.throttled, again.oom_kill) == (5_000_000, 3, 1)
    assert Account.continued("", "").cpu_us == 0
