"""What conditions say of starts changes rarely: not soon after the last change, and not for a small move."""

from __future__ import annotations

import pytest

from model.estimates.start_estimate import EstimateBasis, ExpectedEnd, StartEstimate, estimate_words
from model.workload import WorkloadId
from scheduler.core.estimates.start_book import StartBook

JOB = WorkloadId.pod("ml/a")
FIRST = 100_000.0


def estimate(start: float | None, made: float = 0.0) -> StartEstimate:
    basis = EstimateBasis.UNKNOWN if start is None else EstimateBasis.ROOM
    return StartEstimate(start, basis=basis, made_seconds=made)


@pytest.mark.parametrize(
    ("start", "now", "changes"),
    [
        (FIRST + 50_000, 100.0, False),
        (FIRST + 10_000, 1_000.0, False),
        (FIRST + 50_000, 1_000.0, True),
        (FIRST - 50_000, 1_000.0, True),
        (FIRST + 200, 99_900.0, False),
        (FIRST + 400, 99_900.0, True),
        (None, 1_000.0, True),
    ],
    ids=["soon", "small", "later", "earlier", "near and small", "near", "not known any more"],
)
def test_when_words_change(start: float | None, now: float, changes: bool) -> None:
    """By a quarter of the time that is left, five minutes at least, and five minutes after the last change."""
    book = StartBook()
    book.put({JOB: estimate(FIRST)}, 0.0)
    before = book.words(JOB)
    book.put({JOB: estimate(start, now)}, now)
    assert before == estimate_words(estimate(FIRST))
    assert (book.words(JOB) != before) is changes
    assert book.of(JOB) == estimate(start, now)


def test_many_rounds_of_a_jittering_estimate_write_little() -> None:
    """A day of rounds, half a minute apart, of a start that moves by an hour to and fro two days away."""
    book, said = StartBook(), set()
    for number in range(2_880):
        now = number * 30.0
        book.put({JOB: estimate(200_000.0 + (3_600.0 if number % 2 else -3_600.0), now)}, now)
        said.add(book.words(JOB))
    assert len(said) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gang/ml/bert", ", after gang/ml/bert ends (by 9 past runs of ml/bert 8 gpu)"),
        ("gang/secret/merger", ", after work of another namespace ends (by 9 past runs of such work)"),
        ("pod/ml-2/a", ", after work of another namespace ends (by 9 past runs of such work)"),
    ],
)
def test_the_condition_names_no_work_of_other_namespaces(name: str, words: str) -> None:
    """Whoever reads a namespace reads its conditions; the estimate itself, for who may ask of all, has the name."""
    end = ExpectedEnd(name, FIRST, EstimateBasis.HISTORY, 9, f"{name.partition('/')[2]} 8 gpu")
    found = StartEstimate(FIRST, FIRST, FIRST, EstimateBasis.HISTORY, (end,))
    book = StartBook()
    book.put({JOB: found}, 0.0)
    assert (book.words(JOB) or "").endswith(words)
    assert book.of(JOB) == found


def test_who_waits_no_more_is_forgotten() -> None:
    book = StartBook()
    book.put({JOB: estimate(FIRST)}, 0.0)
    book.put({}, 1.0)
    assert book.words(JOB) is None and book.of(JOB) is None and len(book) == 0
