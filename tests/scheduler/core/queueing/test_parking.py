"""Who is woken by which news, and when it is due: as if each parked workload were looked at by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model.workload import WorkloadId
from scheduler.core.queueing.backoff import BackoffPolicy, Parked, due_seconds, park, served_by, wake
from scheduler.core.queueing.news import Need, News, NewsKind, freed
from scheduler.core.queueing.parking import ParkedWorkloads
from scheduler.core.queues.headroom import BookVersion

POLICY = BackoffPolicy(first_seconds=1.0, longest_seconds=4.0, flush_seconds=20.0)
JOBS = [WorkloadId.pod(f"default/p{number}") for number in range(5)]
NEEDS = (
    None,
    Need(NewsKind.QUEUES),
    Need(NewsKind.QUEUES, frozenset({"cpu"})),
    Need(NewsKind.GROWN, frozenset({"cpu"}), {"cpu": 1}),
)
NEWS = (None, News(NewsKind.QUEUES), News(NewsKind.GROWN), News(NewsKind.PODS), freed(["cpu"]), freed(["memory"]))


class OneByOne:
    """The straightforward computation."""

    def __init__(self) -> None:
        self.parked: dict[WorkloadId, Parked] = {}

    def park(self, subject: WorkloadId, now: float, woken: bool, need: Need | None) -> None:
        self.parked[subject] = park(self.parked.get(subject), POLICY, now, woken=woken, need=need)

    def wake(self, subject: WorkloadId, news: News | None) -> None:
        if (parked := self.parked.get(subject)) is not None:
            self.parked[subject] = wake(parked, served_by(parked.need, news))

    def due(self) -> dict[WorkloadId, float]:
        return {subject: due_seconds(parked, POLICY) for subject, parked in self.parked.items()}


_step = st.one_of(
    st.tuples(st.just("park"), st.sampled_from(JOBS), st.booleans(), st.sampled_from(NEEDS)),
    st.tuples(st.just("wake"), st.sampled_from(JOBS), st.sampled_from(NEWS)),
    st.tuples(st.just("tell"), st.sampled_from(NEWS)),
    st.tuples(st.just("pop"), st.sampled_from(JOBS)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 3.0, 30.0])),
)


@given(st.lists(_step, max_size=40), st.sets(st.sampled_from(JOBS)))
def test_as_if_each_were_looked_at_by_itself(steps: list[tuple[object, ...]], away: set[WorkloadId]) -> None:
    """After any course of things the same are due, at the same times, and as often parked; those that are `away` count
    for no due time until they are shown.
    """
    fast, plain, now = ParkedWorkloads(POLICY), OneByOne(), 100.0
    for kind, *told in steps:
        match kind, told:
            case "park", [WorkloadId() as subject, bool() as woken, need]:
                assert need is None or isinstance(need, Need)
                fast.park(subject, now, woken=woken, need=need)
                plain.park(subject, now, woken, need)
            case "wake", [WorkloadId() as subject, news]:
                assert news is None or isinstance(news, News)
                fast.wake(subject, news)
                plain.wake(subject, news)
            case "tell", [news]:
                assert news is None or isinstance(news, News)
                fast.tell(news)
                for subject in tuple(plain.parked):
                    plain.wake(subject, news)
            case "pop", [WorkloadId() as subject]:
                fast.pop(subject)
                plain.parked.pop(subject, None)
            case "wait", [float() as seconds]:
                now += seconds
        due = plain.due()
        here = {subject: at for subject, at in due.items() if subject not in away}
        assert fast.next_due(lambda subject: subject not in away) == min(here.values(), default=None)
        assert fast.due(now) >= {subject for subject, at in here.items() if at <= now}
        assert {subject: fast.get(subject) for subject in JOBS} == {s: plain.parked.get(s) for s in JOBS}
    for subject in JOBS:
        fast.show(subject)
    assert fast.due(now) == {subject for subject, at in plain.due().items() if at <= now}
    assert fast.next_due(lambda subject: True) == min(plain.due().values(), default=None)
    assert len(fast) == len(plain.parked)


def test_times_of_the_past_are_forgotten() -> None:
    """However often the same is parked again."""
    parked = ParkedWorkloads(POLICY)
    for number in range(5_000):
        parked.park(JOBS[0], float(number))
    assert parked.next_due(lambda subject: True) == 4_999.0 + POLICY.flush_seconds
    assert len(parked._times) < 2_000


def test_what_becomes_free_elsewhere_is_no_help_while_books_stand() -> None:
    """Other queues are; so is anything once what relatives use is another."""
    parked, version = ParkedWorkloads(POLICY), BookVersion("cohort", 3)
    need = Need(NewsKind.QUEUES, frozenset({"cpu"}), version=version)
    parked.park(JOBS[0], 100.0, need=need)
    parked.tell(freed(["cpu"]), lambda asked: asked == version)
    assert parked.due(100.0) == set()
    parked.tell(freed(["cpu"]), lambda asked: False)
    assert parked.due(100.0) == {JOBS[0]}
    parked.park(JOBS[0], 101.0, need=need)
    parked.tell(News(NewsKind.QUEUES), lambda asked: True)
    assert parked.due(101.0) == {JOBS[0]}


LINE = [WorkloadId.pod(f"default/w{number}") for number in range(6)]
LACKS_CPU, LACKS_MORE = (Need(NewsKind.QUEUES, frozenset(names)) for names in ({"cpu"}, {"cpu", "memory"}))


def lined_up(*, told: bool = True) -> ParkedWorkloads:
    """Six that lack CPU alike, the oldest first by name, who were told that some became free."""
    parked = ParkedWorkloads(BackoffPolicy(), lambda subject: (0.0, subject.name))
    for subject in LINE:
        parked.park(subject, 100.0, need=LACKS_CPU)
        parked.line_up(subject, "alike", 100.0)
    if told:
        parked.tell(freed(["cpu"]))
    return parked


def test_of_a_line_the_first_and_the_last_are_due() -> None:
    """Once the first is refused again, for whatever it lacks by then, those between lack the same."""
    parked = lined_up()
    assert parked.due(101.0) == {LINE[0], LINE[-1]}
    assert parked.leads(LINE[0]) and parked.trails(LINE[-1])
    parked.park(LINE[0], 101.0, need=LACKS_MORE)
    parked.line_up(LINE[0], "alike", 101.0)
    assert not parked.leads(LINE[0]) and not parked.trails(LINE[-1])
    assert parked.due(101.0) == {LINE[-1]}
    parked.park(LINE[-1], 101.0, need=LACKS_MORE)
    parked.line_up(LINE[-1], "alike", 101.0)
    parked.tell(freed(["memory"]))
    assert parked.due(101.0) == {LINE[0], LINE[-1]}


def test_those_between_are_due_where_the_first_is_not_refused() -> None:
    """Each by itself from then on, and in a shorter line the next time."""
    parked = lined_up()
    parked.due(101.0)
    parked.pop(LINE[0])
    assert parked.release(LINE[0]) == set(LINE[1:-1]) and parked.release(LINE[0]) == set()
    assert parked.due(101.0) == {LINE[1], LINE[-1]}


def test_a_line_is_looked_at_one_by_one_after_a_minute() -> None:
    """As are those of a short one, and who is woken by name."""
    assert lined_up().due(159.0) == {LINE[0], LINE[-1]}
    assert lined_up().due(160.0) == set(LINE)
    parked = lined_up(told=False)
    parked.alone(LINE[3])
    parked.wake(LINE[3], freed(["cpu"]))
    assert parked.due(101.0) == {LINE[3]}
    parked.tell(freed(["cpu"]))
    assert parked.due(101.0) == {LINE[0], LINE[3], LINE[-1]}
    for subject in LINE[:3]:
        parked.pop(subject)
    assert parked.due(101.0) == set(LINE[3:])


def test_who_is_not_parked_stands_in_no_line() -> None:
    parked = ParkedWorkloads(POLICY)
    parked.line_up(LINE[0], "alike", 100.0)
    parked.alone(LINE[0])
    assert parked.due(200.0) == set() and len(parked) == 0
