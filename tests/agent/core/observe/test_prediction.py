"""Production's peak and what it leaves of the requests, worked by hand.

One sample of 100m lies in the bucket that ends at 107.75, so its percentile is 107 and a pod's peak int(107 x 1.1) =
117; a sample of 0 gives 25. One of 6 MiB gives int(10747903.99) = 10747903 (the float just below 10.25 MiB) and 11822693.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.observe.histogram import CPU_MILLIS, MEMORY_BYTES, Histogram
from agent.core.observe.prediction import (
    NODE_KEY,
    SYSTEM_KEY,
    Checkpoint,
    Model,
    PeakSample,
    Prediction,
    PredictionFacts,
    PredictionPolicy,
    PredictionState,
    band_key,
    checkpoint,
    due,
    peak_samples,
    predict,
    restored,
    train,
)
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import PriorityBand, QoSClass
from model.report import Usage
from model.resources import CPU, MEMORY, ResourceVector
from tests.pods import with_fields

POLICY = PredictionPolicy()
MIB, GIB = 1 << 20, 1 << 30
DAY = 86_400.0
LEARNED = 10 * DAY
NOW = LEARNED + 2 * DAY
PROD, NONE = band_key(PriorityBand.PROD), band_key(PriorityBand.NONE)
ALLOCATABLE = ResourceVector({CPU: 8000, MEMORY: 16 * GIB})


def model(cpu: int, memory: int = 6 * MIB, since: float = LEARNED, updated: float = NOW) -> Model:
    """What is known after samples of one amount."""
    sample = PeakSample("x", cpu, memory)
    made = train(PredictionState(), [sample], updated, POLICY).models["x"]
    return msgspec.structs.replace(made, since_seconds=since)


def pod(build: Any, name: str, cpu: int = 1000, memory: int = GIB, **more: Any) -> Pod:
    made = build.pod(name, cpu=cpu, memory=memory)
    changed: Pod = with_fields(made, **{"created_seconds": LEARNED, **more})
    return changed


def asked(pods: tuple[Pod, ...], allocatable: ResourceVector = ALLOCATABLE, now: float = NOW) -> PredictionFacts:
    return PredictionFacts("n", allocatable, pods, now)


def predicted(pods: tuple[Pod, ...], models: dict[str, Model], allocatable: ResourceVector = ALLOCATABLE) -> Prediction:
    """System and the none band at rest, prod at 100m, unless `models` says otherwise."""
    bands = {SYSTEM_KEY: model(0, 0), NONE: model(0, 0), PROD: model(100)}
    found = predict(PredictionState({**bands, **models}), asked(pods, allocatable), POLICY)
    assert found is not None
    return found


# By bands: (25 system + 107 prod + 25 none) = 157, int(157 x 1.1) = 172.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int, str, int]] = {
    # the second pod, models besides web's and its own, reclaimable milli-CPU, by whom, peak milli-CPU
    # pods: 2 x (1000 - 117) = 1766, peak 234; bands: 2000 - 172 = 1828
    "two learned pods: the lower predictor": ({}, {}, 1766, "pods", 234),
    # bands: 1000 -> end 1035, (25 + 1035 + 25) = 1085, int(1193.5) = 1193; 2000 - 1193 = 807
    "the band has a higher peak than its pods": ({}, {PROD: model(1000)}, 807, "bands", 1193),
    # system the same: (1035 + 107 + 25) = 1167, int(1283.7) = 1283; 2000 - 1283 = 717
    "the system counts": ({}, {SYSTEM_KEY: model(1000)}, 717, "bands", 1283),
    "the none band counts": ({}, {NONE: model(1000)}, 717, "bands", 1283),
    "the system watched since today: pods alone do not decide": (
        {},
        {SYSTEM_KEY: model(0, 0, since=NOW - DAY)},
        0,
        "bands",
        234,
    ),
    # 883 + 0; peak 117 + 1000
    "a pod created today": ({"created_seconds": NOW - DAY}, {}, 883, "pods", 1117),
    "a pod of just over a day": ({"created_seconds": NOW - DAY - 1}, {}, 1766, "pods", 234),
    "an old pod watched since today": ({}, {"uid-db": model(100, since=NOW - DAY)}, 883, "pods", 1117),
    "a pod that was not seen for over half an hour": (
        {},
        {"uid-db": model(100, updated=NOW - 1801)},
        883,
        "pods",
        1117,
    ),
    "a pod from the none band": ({"band": PriorityBand.NONE}, {}, 1766, "pods", 234),
    # bands: only web's request, 1000 - 172 = 828; pods: 883; peak 117 + 1000
    "a leaving pod": ({"deleting": True}, {}, 828, "bands", 1117),
    # web alone: pods 883 and 117, bands 828 and 172
    "a finished pod": ({"phase": PodPhase.SUCCEEDED}, {}, 828, "bands", 172),
    "a batch pod": ({"band": PriorityBand.BATCH}, {}, 828, "bands", 172),
    "a mid pod": ({"band": PriorityBand.MID}, {}, 828, "bands", 172),
    # pods: 883 + max(50 - 117, 0); bands with prod at rest: 75, int(82.5) = 82, 1050 - 82 = 968; peak 234
    "a pod above its request": ({"cpu": 50}, {PROD: model(0)}, 883, "pods", 234),
    # bands: 4000 -> end 4217, + 50 = 4267, int(4693.7) = 4693 > 2000
    "production above all its requests": ({}, {PROD: model(4000)}, 0, "bands", 4693),
}


@pytest.mark.parametrize(("second", "models", "left", "by", "peak"), CASES.values(), ids=CASES.keys())
def test_cpu(build: Any, second: dict[str, Any], models: dict[str, Model], left: int, by: str, peak: int) -> None:
    """Two pods of 1000m each, both learned at 100m, of which the second differs."""
    pods = (pod(build, "web"), pod(build, "db", **second))
    found = predicted(pods, {"uid-web": model(100), "uid-db": model(100), **models})
    assert (found.prod_reclaimable.cpu_millis, found.prod_peak.cpu_millis) == (left, peak)
    assert found.decisions[0].policy == by


@pytest.mark.parametrize("learned", [True, False])
def test_a_pod_that_is_resized_lends_nothing_it_does_not_have_yet(build: Any, learned: bool) -> None:
    """It is kept room for what it wants, and leaves of what it has: 1000 m of which it wants 3000."""
    models = {"uid-web": model(100), **({"uid-db": model(100)} if learned else {})}
    as_before = predicted((pod(build, "web"), pod(build, "db")), models)
    growing = pod(build, "db", cpu=3000, certain=ResourceVector({CPU: 1000, MEMORY: GIB}))
    found = predicted((pod(build, "web"), growing), models)
    assert found.prod_reclaimable == as_before.prod_reclaimable
    assert found.prod_peak.cpu_millis == as_before.prod_peak.cpu_millis + (0 if learned else 2000)


def test_terms_by_pods(build: Any, terms: Any) -> None:
    """Each part of the chosen predictor, signed; the other one's value stands beside it."""
    pods = (pod(build, "web"), pod(build, "db", cpu=50), pod(build, "new", cpu=300, created_seconds=NOW))
    found = predicted(pods, {"uid-web": model(100), "uid-db": model(100), PROD: model(0)})
    left, _, peak, _ = found.decisions
    assert (left.subject, left.name, left.value, left.policy) == ("node/n", "prod-reclaimable-cpu", 883, "pods")
    assert terms(left) == {
        "requests": 1350,
        "learned peaks": -234,
        "requests of other pods": -300,
        "peaks above request": 67,
    }
    assert (peak.name, peak.value, terms(peak)) == (
        "prod-peak-cpu",
        534,
        {"learned peaks": 234, "requests of other pods": 300},
    )
    # bands: 1350 - 82 = 1268
    assert (left.detail, peak.detail) == ("by pods 883, by bands 1268", "by pods 534, by bands 82")
    assert left.at_seconds == NOW


def test_terms_by_bands(build: Any, terms: Any) -> None:
    """The bound and the floor appear only where they matter."""
    left, _, peak, _ = predicted((pod(build, "web"),), {"uid-web": model(100)}).decisions
    parts = {"system peak": 25, "prod band peak": 107, "none band peak": 25, "safety margin": 15}
    assert terms(left) == {"requests": 1000, **{name: -amount for name, amount in parts.items()}}
    assert (left.value, peak.value, terms(peak)) == (828, 172, parts)


def test_memory(build: Any, terms: Any) -> None:
    """p98 of 6 MiB is 10747903; by bands 10747903 + 2 x 5242880 = 21233663, int(x 1.1) = 23357029."""
    found = predicted((pod(build, "web"),), {"uid-web": model(100)})
    assert found.prod_reclaimable.memory_bytes == GIB - 23357029
    assert found.prod_peak.memory_bytes == 23357029
    assert [d.name for d in found.decisions] == [
        "prod-reclaimable-cpu",
        "prod-reclaimable-memory",
        "prod-peak-cpu",
        "prod-peak-memory",
    ]
    # by pods: GIB - 11822693 is more
    assert found.decisions[1].detail == f"by pods {GIB - 11822693}, by bands {GIB - 23357029}"


BOUNDS: dict[str, tuple[int, int, str]] = {
    # pods: min(883, allocatable - 117), bands: min(828, allocatable - 172)
    "room for all": (8000, 828, ""),
    "less than what the requests leave": (500, 328, "allocatable bound"),
    "less than the peak": (100, 0, "allocatable bound"),
}


@pytest.mark.parametrize(("allocatable", "expected", "term"), BOUNDS.values(), ids=BOUNDS.keys())
def test_allocatable_bounds_what_is_left(build: Any, terms: Any, allocatable: int, expected: int, term: str) -> None:
    """Requests may be amplified beyond the machine; what is left may not."""
    vector = ResourceVector({CPU: allocatable, MEMORY: 16 * GIB})
    found = predicted((pod(build, "web"),), {"uid-web": model(100)}, vector).decisions[0]
    assert found.value == expected
    assert (term in terms(found)) is bool(term)


def test_cpu_uses_p95_and_memory_p98(build: Any) -> None:
    """96 samples low and 4 high: 95 % are low, 98 % are not."""
    state = PredictionState()
    keys = ("uid-web", SYSTEM_KEY, PROD, NONE)
    for at in range(100):
        high = at < 4
        samples = [PeakSample(key, 1000 if high else 100, (60 if high else 6) * MIB) for key in keys]
        state = train(state, samples, NOW, POLICY)
    old = {key: msgspec.structs.replace(one, since_seconds=LEARNED) for key, one in state.models.items()}
    found = predict(PredictionState(old), asked((pod(build, "web"),)), POLICY)
    assert found is not None
    # by bands, CPU: 3 x 107 = 321, int(353.1); memory: 60 MiB -> end 62.89 MiB, 3 x 65944381 = 197833143, int(217616457.3)
    assert found.prod_peak == Usage(353, 217_616_457)


@pytest.mark.parametrize("gone", [SYSTEM_KEY, PROD, NONE])
def test_unknown_system_or_production_is_no_prediction(build: Any, gone: str) -> None:
    """Neither missing nor outdated models are taken for zero."""
    bands = {SYSTEM_KEY: model(0), PROD: model(0), NONE: model(0)}
    without = {key: one for key, one in bands.items() if key != gone}
    facts = asked((pod(build, "web"),))
    assert predict(PredictionState(without), facts, POLICY) is None
    assert predict(PredictionState({**bands, gone: model(0, updated=NOW - 1801)}), facts, POLICY) is None
    assert predict(PredictionState(bands), facts, POLICY) is not None


@pytest.mark.parametrize("vector", [ResourceVector(), ResourceVector({CPU: 8000}), ResourceVector({MEMORY: GIB})])
def test_unknown_allocatable_is_no_prediction(vector: ResourceVector) -> None:
    """Without the bound nothing is said."""
    bands = {SYSTEM_KEY: model(0), PROD: model(0), NONE: model(0)}
    assert predict(PredictionState(bands), asked((), vector), POLICY) is None


def test_losing_all_models_leaves_nothing_until_a_day_is_learned(build: Any) -> None:
    """Pods may be old: what they were seen to use before is gone, so their requests count."""
    web = pod(build, "web", created_seconds=0.0)
    state = PredictionState()
    values = []
    for minute in range(24 * 60 + 2):
        now = NOW + 60 * minute
        state = train(
            state, peak_samples((web,), {web.uid: Usage(100, 6 * MIB)}, Usage(100, 6 * MIB), Usage()), now, POLICY
        )
        found = predict(state, asked((web,), now=now), POLICY)
        assert found is not None
        values.append((found.prod_reclaimable.cpu_millis, found.prod_peak.cpu_millis))
    assert set(values[:-1]) == {(0, 1000)}
    assert values[-1] == (828, 172)


usages = st.integers(0, 5000)


@settings(max_examples=60)
@given(st.lists(st.tuples(usages, usages, st.booleans()), max_size=6), usages, st.integers(0, 20_000), usages)
def test_bounds_and_monotony(
    build: Any, parts: list[tuple[int, int, bool]], system: int, allocatable: int, more: int
) -> None:
    """Never negative, never above allocatable - peak; more use never lowers the peak nor lends more."""
    pods = tuple(
        pod(build, f"p{n}", cpu=request, created_seconds=NOW if cold else LEARNED)
        for n, (request, _, cold) in enumerate(parts)
    )
    vector = ResourceVector({CPU: allocatable, MEMORY: 16 * GIB})

    def at(extra: int) -> Prediction:
        models = {f"uid-p{n}": model(used + extra) for n, (_, used, _) in enumerate(parts)}
        total = sum(used + extra for _, used, _ in parts)
        return predicted(pods, {**models, SYSTEM_KEY: model(system), PROD: model(total)}, vector)

    low, high = at(0), at(more)
    for found in (low, high):
        left, peak = found.prod_reclaimable.cpu_millis, found.prod_peak.cpu_millis
        assert 0 <= left <= max(allocatable - peak, 0)
        assert [sum(term.value for term in d.terms) for d in found.decisions] == [d.value for d in found.decisions]
    assert low.prod_peak.cpu_millis <= high.prod_peak.cpu_millis
    assert low.prod_reclaimable.cpu_millis >= high.prod_reclaimable.cpu_millis


def test_samples_of_the_node_and_its_parts(build: Any) -> None:
    """Bands are sums, 0 where empty; the system is what the node uses outside measured pods."""
    web, db, batch = pod(build, "web"), pod(build, "db"), build.batch()
    unmeasured = pod(build, "quiet")
    measured = {web.uid: Usage(100, 10), db.uid: Usage(200, 20), batch.uid: Usage(400, 40)}
    found = peak_samples((web, db, batch, unmeasured), measured, Usage(1000, 100), Usage())
    assert {sample.key: (sample.cpu_millis, sample.memory_bytes) for sample in found} == {
        web.uid: (100, 10),
        db.uid: (200, 20),
        batch.uid: (400, 40),
        NODE_KEY: (1000, 100),
        SYSTEM_KEY: (300, 30),
        PROD: (300, 30),
        band_key(PriorityBand.BATCH): (400, 40),
        band_key(PriorityBand.MID): (0, 0),
        band_key(PriorityBand.FREE): (0, 0),
        NONE: (0, 0),
    }


def test_samples_without_the_node_are_those_of_pods(build: Any) -> None:
    """A node that was not measured is not one at rest; a system below zero is 0."""
    web = pod(build, "web")
    measured = {web.uid: Usage(100, 10)}
    assert peak_samples((web,), measured, None, Usage()) == (PeakSample(web.uid, 100, 10),)
    by_key = {sample.key: sample for sample in peak_samples((web,), measured, Usage(90, 5), Usage())}
    assert by_key[SYSTEM_KEY] == PeakSample(SYSTEM_KEY, 0, 0)


def test_the_system_is_no_less_than_what_pods_left_over(build: Any) -> None:
    """Two pods that peaked one after the other took off more than they ever used together."""
    pods = pod(build, "web"), build.batch()
    measured = {each.uid: Usage(500, 50) for each in pods}
    by_key = {sample.key: sample for sample in peak_samples(pods, measured, Usage(900, 90), Usage(300, 30))}
    assert by_key[SYSTEM_KEY] == PeakSample(SYSTEM_KEY, 300, 30)


def test_training_adds_one_sample_with_weight_one() -> None:
    """CPU and memory decay with their own half-lives; the first sample dates the model."""
    state = train(PredictionState(), [PeakSample("uid", 100, 6 * MIB)], 0.0, POLICY)
    state = train(state, [PeakSample("uid", 1000, 60 * MIB)], 1200.0, POLICY)
    one = state.models["uid"]
    assert one.cpu == Histogram().add(CPU_MILLIS, 43_200, 100, 0.0).add(CPU_MILLIS, 43_200, 1000, 1200.0)
    assert (one.since_seconds, one.updated_seconds) == (1140.0, 1200.0)
    assert one.memory == Histogram().add(MEMORY_BYTES, 86_400, 6 * MIB, 0.0).add(MEMORY_BYTES, 86_400, 60 * MIB, 1200.0)


GAPS: dict[str, tuple[float, float]] = {
    # from one sample to the next, how much of it counts as watched
    "a minute": (60.0, 60.0),
    "a tick late": (65.0, 65.0),
    "an agent that was away for ten minutes": (600.0, 60.0),
    "a clock that was set 29 minutes ahead": (1740.0, 60.0),
    "a clock that was set back": (-600.0, 0.0),
}


@pytest.mark.parametrize(("gap", "counts"), GAPS.values(), ids=GAPS)
def test_only_what_was_watched_counts_towards_the_cold_start(gap: float, counts: float) -> None:
    state = PredictionState({"uid": model(100)})
    found = train(state, [PeakSample("uid", 100, 0)], NOW + gap, POLICY).models["uid"]
    assert found.updated_seconds - found.since_seconds == NOW - LEARNED + counts


def test_no_cold_start_ends_by_a_clock_that_is_set_ahead(build: Any) -> None:
    """Of the pod and of the bands alike, before the next sample and after it; it ends once a day was watched."""
    pods = (pod(build, "web", created_seconds=LEARNED - DAY),)
    state, now = PredictionState(), LEARNED

    def learn(minutes: int) -> None:
        nonlocal state, now
        for _ in range(minutes):
            state = train(
                state, peak_samples(pods, {pods[0].uid: Usage(100, 6 * MIB)}, Usage(200, GIB), Usage()), now, POLICY
            )
            now += 60.0

    def reclaimable() -> Usage:
        found = predict(state, asked(pods, now=now), POLICY)
        assert found is not None
        return found.prod_reclaimable

    learn(1430)
    for _ in range(5):
        now += 1700.0
        assert reclaimable() == Usage()
        learn(1)
        assert reclaimable() == Usage()
    learn(10)
    assert reclaimable().cpu_millis > 0


AGES: dict[str, tuple[float, bool]] = {
    "seen just now": (0.0, True),
    "30 minutes ago": (1800.0, True),
    "longer ago": (1801.0, False),
    "the clock went back a little": (-600.0, True),
    "the clock went back a day": (-DAY, False),
}


@pytest.mark.parametrize(("age", "kept"), AGES.values(), ids=AGES.keys())
def test_models_expire(age: float, kept: bool) -> None:
    """In training and at a restart alike; an expired model that comes back starts again."""
    state = PredictionState({"uid": model(100, updated=NOW)})
    assert ("uid" in train(state, [], NOW + age, POLICY).models) is kept
    assert ("uid" in restored(checkpoint(state, POLICY), NOW + age, POLICY).models) is kept
    again = train(state, [PeakSample("uid", 100, 0)], NOW + age, POLICY).models["uid"]
    assert again.since_seconds == (LEARNED + max(age - 60, 0) if kept else NOW + age)


def test_a_restart_keeps_what_is_not_too_old() -> None:
    """The models come back to the last bit."""
    models = {key: model(100) for key in ("uid-web", NODE_KEY, SYSTEM_KEY, PROD, NONE)}
    models["uid-gone"] = model(100, updated=NOW - 1801)
    saved = checkpoint(PredictionState(models), POLICY)
    again = msgspec.json.decode(msgspec.json.encode(saved), type=Checkpoint)
    found = restored(again, NOW, POLICY)
    assert found.models == {key: one for key, one in models.items() if key != "uid-gone"}


def test_other_half_lives_start_again() -> None:
    """Weights made with 12 h would drown those made with 48 h for weeks."""
    saved = checkpoint(PredictionState({PROD: model(100)}), POLICY)
    assert restored(saved, NOW, PredictionPolicy(cpu_half_life_seconds=172_800.0)).models == {}
    assert restored(saved, NOW, PredictionPolicy(memory_half_life_seconds=43_200.0)).models == {}


IMPLAUSIBLE: dict[str, dict[str, Any]] = {
    "an empty histogram": {"cpu": Histogram()},
    "no memory": {"memory": Histogram(LEARNED, 0, b"")},
    "a memory bucket that CPU does not have": {"cpu": Histogram(NOW, 200, model(1).cpu.weights)},
    "weights from the far future": {"cpu": Histogram(NOW + DAY, 0, model(1).cpu.weights)},
    "weights that would fade at once": {"cpu": Histogram(-1e9, 0, model(1).cpu.weights)},
    "watched since after it was last seen": {"since_seconds": NOW + 1},
    "no time at all": {"updated_seconds": float("nan")},
}


@pytest.mark.parametrize("change", IMPLAUSIBLE.values(), ids=IMPLAUSIBLE.keys())
def test_an_implausible_model_is_refused(change: dict[str, Any]) -> None:
    """A wrong history could lend too much: the whole document is bad, and names the model."""
    assert checkpoint(PredictionState({"uid": model(1)}), POLICY).version == 1
    with pytest.raises(ValueError, match="the model of uid"):
        checkpoint(PredictionState({"uid": msgspec.structs.replace(model(1), **change)}), POLICY)


DUE: dict[str, tuple[float, bool]] = {
    "just trained": (0.0, False),
    "a moment too early": (59.9, False),
    "a minute later": (60.0, True),
    "the clock was set back": (-1.0, True),
}


@pytest.mark.parametrize(("later", "expected"), DUE.values(), ids=DUE.keys())
def test_training_is_due_each_minute(later: float, expected: bool) -> None:
    """At once after a start."""
    assert due(PredictionState(), NOW, POLICY)
    assert due(train(PredictionState(), [], NOW, POLICY), NOW + later, POLICY) is expected


@pytest.mark.parametrize(
    "change",
    [
        {"safety_margin_pct": -1},
        {"cpu_percentile_pct": 101},
        {"memory_percentile_pct": 0},
        {"cold_start_seconds": -1.0},
        {"model_expiry_seconds": 90.0},
        {"cpu_half_life_seconds": 0.0},
        {"training_interval_seconds": 0.0},
    ],
)
def test_settings_out_of_range_are_named(change: dict[str, Any]) -> None:
    """No setting makes a peak smaller than what was seen, or a model older than its half-life."""
    with pytest.raises(msgspec.ValidationError, match=next(iter(change))):
        msgspec.convert(change, PredictionPolicy)


def test_exclusive_cpu_leaves_nothing(build: Any) -> None:
    """However little an LSE pod uses of it; its memory is left as everybody's. 1000 - 117 = 883 of the other."""
    models = {"uid-web": model(100), "uid-own": model(100)}
    web = pod(build, "web")
    both = predicted((web, pod(build, "own")), models).prod_reclaimable
    exclusive = predicted((web, pod(build, "own", qos=QoSClass.LSE)), models).prod_reclaimable
    assert (both.cpu_millis, exclusive.cpu_millis) == (1766, 883) and exclusive.memory_bytes == both.memory_bytes
