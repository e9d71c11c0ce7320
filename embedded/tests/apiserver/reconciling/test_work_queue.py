"""What a controller has to look at, and when."""

from embedded.apiserver.reconciling.work_queue import WorkQueue

A, B = ("ns", "a"), ("ns", "b")


def test_each_is_taken_once_and_in_order():
    """However often it was asked for."""
    waiting = WorkQueue()
    for key in (B, A, B):
        waiting.now(key)
    waiting.at(A, 5.0)
    assert waiting.take(5.0) == [A, B] and waiting.take(5.0) == [] and waiting.idle


def test_the_earliest_time_counts():
    """A later wish does not put it off; next_due names it."""
    waiting = WorkQueue()
    waiting.at(A, 10.0)
    waiting.at(A, 20.0)
    waiting.at(B, 15.0)
    assert waiting.next_due() == 10.0 and waiting.take(9.0) == []
    assert waiting.take(10.0) == [A] and waiting.next_due() == 15.0
    waiting.forget(B)
    assert waiting.next_due() is None


def test_a_time_given_up_may_be_given_again():
    """Later than before, which an entry left behind does not undo."""
    waiting = WorkQueue()
    waiting.at(A, 10.0)
    waiting.forget(A)
    waiting.at(A, 20.0)
    assert waiting.take(15.0) == [] and waiting.take(20.0) == [A]


def test_what_is_refused_waits_twice_as_long_each_time():
    """Up to a minute; success starts over."""
    waiting, now, pauses = WorkQueue(), 0.0, []
    for _ in range(9):
        waiting.refused(A, now)
        due = waiting.next_due()
        pauses.append(due - now)
        assert waiting.must_pause(A, due - 0.1) and not waiting.must_pause(A, due)
        now = due
        waiting.take(now)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    waiting.accepted(A)
    waiting.refused(A, now)
    assert waiting.next_due() == now + 1


def test_what_was_given_up_leaves_nothing_behind():
    """Its time may be a day ahead, and as many again may come and go until then."""
    waiting = WorkQueue()
    waiting.at(B, 90_000.0)
    for number in range(1000):
        waiting.at(("ns", str(number)), 86_400.0 + number)
        waiting.forget(("ns", str(number)))
    assert len(waiting._order) < 100
    assert waiting.next_due() == 90_000.0 and waiting.take(90_000.0) == [B]
