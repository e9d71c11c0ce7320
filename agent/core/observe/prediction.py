"""Peaks of production work, learned once a minute, and how much of its requests they leave unused.

Two predictors look at production pods (bands prod and none). The lower one says what is reclaimable, the higher one
what the peak is:

    pods  peak = sum of pod peaks                         reclaimable = sum of max(request - peak, 0)
    bands peak = (system + prod + none peak) + margin     reclaimable = max(sum of requests - peak, 0)

both bounded by allocatable - peak. A pod's peak is the 95th (CPU) or 98th (memory) percentile of its decaying
histogram plus 10 %; a pod that was not watched for a day counts with its request and leaves nothing.

Source: Koordinator pkg/koordlet/prediction; differences in docs/adr/0006-prediction.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from agent.core.observe.exclusive_cpu import exclusive_millis
from agent.core.observe.histogram import CPU_MILLIS, MEMORY_BYTES, Buckets, Histogram
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.qos import PriorityBand
from model.reason import Reason
from model.report import Usage
from model.resources import CPU, MEMORY, ResourceVector
from model.topology import KubeletPolicy

_LATEST_RATIO = 1.1
"""From one training to the next, of its interval: a longer time was not watched, or the clock was set ahead."""
_LARGEST_EXPONENT = 101
"""Half-lives that may lie between a histogram's reference and its newest sample."""


class PredictionPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How peaks are learned and used (defaults of Koordinator pkg/koordlet/prediction/config.go).

    The ranges keep the expiry well above the training interval, and so far below the shortest half-life times 100 that
    a model that is kept has never faded away.
    """

    training_interval_seconds: Annotated[
        float, Meta(ge=10, le=600, description="How often the models of production peaks get a sample.")
    ] = 60.0
    checkpoint_interval_seconds: Annotated[
        float, Meta(ge=60, le=3600, description="How often the models are written to disk.")
    ] = 600.0
    model_expiry_seconds: Annotated[
        float, Meta(ge=1200, le=7200, description="A model without a sample for this long is dropped.")
    ] = 1800.0
    cold_start_seconds: Annotated[
        float, Meta(ge=0, le=2_592_000, description="A pod younger, or watched for less, counts with its request.")
    ] = 86_400.0
    cpu_half_life_seconds: Annotated[
        float, Meta(ge=3600, le=2_592_000, description="After this time a CPU sample weighs half.")
    ] = 43_200.0
    memory_half_life_seconds: Annotated[
        float, Meta(ge=3600, le=2_592_000, description="After this time a memory sample weighs half.")
    ] = 86_400.0
    cpu_percentile_pct: Annotated[int, Meta(ge=50, le=100, description="Percentile of CPU use that is its peak.")] = 95
    memory_percentile_pct: Annotated[
        int, Meta(ge=50, le=100, description="Percentile of memory use that is its peak.")
    ] = 98
    safety_margin_pct: Annotated[int, Meta(ge=0, le=100, description="Added to a peak.")] = 10

    @property
    def half_lives(self) -> tuple[float, float]:
        """Of CPU and memory. Weights made with others cannot be compared with new ones."""
        return self.cpu_half_life_seconds, self.memory_half_life_seconds


NODE_KEY = "__node__"
SYSTEM_KEY = "__node-sys__"


def band_key(band: PriorityBand) -> str:
    """The model of all pods of a band (Koordinator's spelling)."""
    return f"__node-{band.value}__"


_PRODUCTION = (PriorityBand.PROD, PriorityBand.NONE)


class PeakSample(msgspec.Struct, frozen=True):
    """90th percentile of an object's usage over the last training interval; `key` is a pod's uid or a node key."""

    key: str
    cpu_millis: int
    memory_bytes: int


class Model(msgspec.Struct, frozen=True, gc=False):
    """What is known of one object, last at `updated_seconds`; `since_seconds` lies as long before as it was watched.

    Both are Unix time. What passed unwatched, and what the clock was set ahead by, moves `since_seconds`.
    """

    cpu: Histogram
    memory: Histogram
    since_seconds: float
    updated_seconds: float


class PredictionState(msgspec.Struct, frozen=True):
    """Key → model, and when they were last trained; empty at the start."""

    models: Mapping[str, Model] = {}
    trained_seconds: float = 0.0


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A state as it is kept across restarts, with the half-lives its weights were made with.

    Raises ValueError where a model cannot be one of ours: a wrong history could lend too much.
    """

    cpu_half_life_seconds: float
    memory_half_life_seconds: float
    models: Mapping[str, Model]
    version: int = 1

    def __post_init__(self) -> None:
        if self.version != 1:
            raise ValueError(f"version {self.version} is not 1")
        for key, model in self.models.items():
            cpu = _plausible(model.cpu, CPU_MILLIS, self.cpu_half_life_seconds, model.updated_seconds)
            memory = _plausible(model.memory, MEMORY_BYTES, self.memory_half_life_seconds, model.updated_seconds)
            if not (cpu and memory and model.since_seconds <= model.updated_seconds):
                raise ValueError(f"the model of {key} is not one")


def _plausible(histogram: Histogram, buckets: Buckets, half_life_seconds: float, updated_seconds: float) -> bool:
    age = updated_seconds - histogram.reference_seconds
    return -half_life_seconds <= age <= _LARGEST_EXPONENT * half_life_seconds and histogram.sound(buckets)


def checkpoint(state: PredictionState, policy: PredictionPolicy) -> Checkpoint:
    """All that must survive a restart."""
    return Checkpoint(policy.cpu_half_life_seconds, policy.memory_half_life_seconds, state.models)


def restored(saved: Checkpoint, now: float, policy: PredictionPolicy) -> PredictionState:
    """The models that are not too old; with other half-lives everything is learned again."""
    if (saved.cpu_half_life_seconds, saved.memory_half_life_seconds) != policy.half_lives:
        return PredictionState()
    return PredictionState({key: model for key, model in saved.models.items() if _fresh(model, now, policy)})


def peak_samples(
    pods: Iterable[Pod], measured: Mapping[str, Usage], node: Usage | None, outside_pods: Usage
) -> tuple[PeakSample, ...]:
    """What to train with: each measured pod, the node, the sum of each band (0 where it is empty), and the system.

    System is the node minus all measured pods, so a pod that was not measured counts there; and no less than what was
    used `outside_pods`, since pods that peak at different times take more off than they ever used together. Without
    the node's usage only the pods are trained.
    """
    samples = []
    sums = dict.fromkeys(PriorityBand, Usage())
    for pod in pods:
        if (usage := measured.get(pod.uid)) is not None:
            samples.append(_sample(pod.uid, usage))
            sums[pod.colocation.band] = _plus(sums[pod.colocation.band], usage)
    if node is None:
        return tuple(samples)
    used = Usage(sum(u.cpu_millis for u in sums.values()), sum(u.memory_bytes for u in sums.values()))
    system = Usage(
        max(node.cpu_millis - used.cpu_millis, outside_pods.cpu_millis),
        max(node.memory_bytes - used.memory_bytes, outside_pods.memory_bytes),
    )
    samples += [_sample(NODE_KEY, node), _sample(SYSTEM_KEY, system)]
    samples += [_sample(band_key(band), usage) for band, usage in sums.items()]
    return tuple(samples)


def _sample(key: str, usage: Usage) -> PeakSample:
    return PeakSample(key, usage.cpu_millis, usage.memory_bytes)


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(one.cpu_millis + other.cpu_millis, one.memory_bytes + other.memory_bytes)


def due(state: PredictionState, now: float, policy: PredictionPolicy) -> bool:
    """Another training interval has passed, or the clock was set back."""
    return not 0 <= now - state.trained_seconds < policy.training_interval_seconds


def train(
    state: PredictionState, samples: Iterable[PeakSample], now: float, policy: PredictionPolicy
) -> PredictionState:
    """The models with one more sample each; those not seen for `model_expiry_seconds` are gone."""
    models = {key: model for key, model in state.models.items() if _fresh(model, now, policy)}
    for sample in samples:
        known = models.get(sample.key) or Model(Histogram(), Histogram(), now, now)
        models[sample.key] = Model(
            known.cpu.add(CPU_MILLIS, policy.cpu_half_life_seconds, sample.cpu_millis, now),
            known.memory.add(MEMORY_BYTES, policy.memory_half_life_seconds, sample.memory_bytes, now),
            known.since_seconds + _unwatched(now - known.updated_seconds, policy),
            max(known.updated_seconds, now),
        )
    return PredictionState(models, now)


def _unwatched(gap_seconds: float, policy: PredictionPolicy) -> float:
    """How much of the time between two samples counts as watched by neither."""
    interval = policy.training_interval_seconds
    return gap_seconds - interval if gap_seconds > interval * _LATEST_RATIO else 0.0


def _warm(model: Model, now: float, policy: PredictionPolicy) -> bool:
    """Watched for longer than the cold start; since the last sample for no longer than there is between two."""
    lately = min(max(now - model.updated_seconds, 0.0), policy.training_interval_seconds)
    return model.updated_seconds - model.since_seconds + lately > policy.cold_start_seconds


def _fresh(model: Model, now: float, policy: PredictionPolicy) -> bool:
    """A model from the future is no better than an old one: the clock was set back, its weights are too heavy."""
    return abs(now - model.updated_seconds) <= policy.model_expiry_seconds


class PredictionFacts(msgspec.Struct, frozen=True):
    """What a prediction is about; `allocatable` is the raw one where the Node carries that annotation."""

    node: str
    allocatable: ResourceVector
    pods: tuple[Pod, ...]
    at_seconds: float
    kubelet_policy: KubeletPolicy = KubeletPolicy.NONE


class Prediction(msgspec.Struct, frozen=True):
    """NodeMetric's prodReclaimable and prodPeak, and the four decisions behind them."""

    prod_reclaimable: Usage
    prod_peak: Usage
    decisions: tuple[Decision, ...]


class _Resource(msgspec.Struct, frozen=True):
    """CPU in milli-CPU or memory in bytes: where its peaks stand and how they are cut."""

    name: str
    unit: Unit
    percentile_pct: int
    margin_pct: int
    allocatable: int

    def percentile(self, model: Model) -> int:
        histogram, buckets = (model.cpu, CPU_MILLIS) if self.name == CPU else (model.memory, MEMORY_BYTES)
        return int(histogram.percentile(buckets, self.percentile_pct / 100))

    def with_margin(self, amount: int) -> int:
        """Koordinator's order of operations: the ratio is rounded to a float first, then the product cut."""
        return int(amount * ((100 + self.margin_pct) / 100))

    @property
    def note(self) -> str:
        return f"p{self.percentile_pct} plus {self.margin_pct} %"

    def bounded(self, terms: TermSum, peak: TermSum) -> TermSum:
        room = max(self.allocatable - peak.value, 0)
        return terms.at_most("allocatable bound", room, f"allocatable {self.allocatable} minus the peak")


class _Predictor(msgspec.Struct, frozen=True):
    """One view of production's peak, and what it leaves of the requests."""

    name: str
    peak: TermSum
    reclaimable: TermSum


def predict(state: PredictionState, facts: PredictionFacts, policy: PredictionPolicy) -> Prediction | None:
    """Production's peak and what its requests leave; None until system and production were watched, or on no node."""
    now = facts.at_seconds
    fresh = {key: model for key, model in state.models.items() if _fresh(model, now, policy)}
    parts = {
        "system peak": fresh.get(SYSTEM_KEY),
        "prod band peak": fresh.get(band_key(PriorityBand.PROD)),
        "none band peak": fresh.get(band_key(PriorityBand.NONE)),
    }
    bands = {name: model for name, model in parts.items() if model is not None}
    if len(bands) < len(parts) or CPU not in facts.allocatable or MEMORY not in facts.allocatable:
        return None
    pods = [pod for pod in facts.pods if pod.colocation.band in _PRODUCTION and not pod.terminal]
    learned = {pod.uid: model for pod in pods if (model := _learned(pod, fresh, now, policy)) is not None}
    warm = all(_warm(model, now, policy) for model in bands.values())
    margin, allocatable = policy.safety_margin_pct, facts.allocatable
    cpu = _Resource(CPU, Unit.MILLI_CPU, policy.cpu_percentile_pct, margin, allocatable[CPU])
    memory = _Resource(MEMORY, Unit.BYTES, policy.memory_percentile_pct, margin, allocatable[MEMORY])
    # Nobody else may use what they leave of CPU of their own, so that it counts as used.
    exclusive = {pod.uid for pod in pods if exclusive_millis(pod, facts.kubelet_policy)}
    sharing = {uid: model for uid, model in learned.items() if uid not in exclusive}
    cpu_left, cpu_peak = _decide(cpu, facts, _by_pods(cpu, pods, sharing), _by_bands(cpu, pods, bands, warm))
    memory_left, memory_peak = _decide(
        memory, facts, _by_pods(memory, pods, learned), _by_bands(memory, pods, bands, warm)
    )
    return Prediction(
        Usage(cpu_left.value, memory_left.value),
        Usage(cpu_peak.value, memory_peak.value),
        (cpu_left, memory_left, cpu_peak, memory_peak),
    )


def _learned(pod: Pod, fresh: Mapping[str, Model], now: float, policy: PredictionPolicy) -> Model | None:
    """The pod's model where it may be relied on: both the pod and our watching are older than the cold start."""
    model = fresh.get(pod.uid)
    if model is None or pod.deleting:
        return None
    old = now - pod.created_seconds > policy.cold_start_seconds
    return model if old and _warm(model, now, policy) else None


def _by_pods(resource: _Resource, pods: list[Pod], learned: Mapping[str, Model]) -> _Predictor:
    requests = {pod.uid: pod.spec.requests[resource.name] for pod in pods}
    certain = {pod.uid: _certain(pod, resource) for pod in pods}
    peaks = {uid: resource.with_margin(resource.percentile(model)) for uid, model in learned.items()}
    standing_in = sum(amount for uid, amount in requests.items() if uid not in peaks)
    above = sum(max(amount - certain[uid], 0) for uid, amount in peaks.items())
    cold_note = f"{len(pods) - len(learned)} pods watched too briefly, leaving, or with exclusive CPU: their requests"
    peak = TermSum()
    peak.add("learned peaks", sum(peaks.values()), f"{len(learned)} pods, {resource.note}")
    peak.add("requests of other pods", standing_in, cold_note)
    left = TermSum()
    left.add("requests", sum(certain.values()), f"{len(pods)} production pods")
    left.add("learned peaks", -sum(peaks.values()), f"{len(learned)} pods, {resource.note}")
    left.add("requests of other pods", -sum(held for uid, held in certain.items() if uid not in peaks), cold_note)
    left.add("peaks above request", above, "a pod that needs more than it asked for leaves nothing, not less")
    return _Predictor("pods", peak, resource.bounded(left, peak))


def _certain(pod: Pod, resource: _Resource) -> int:
    """Of a pod that is being resized the least: what it is only promised is nobody's yet, and not there to be lent."""
    return (pod.spec.requests if pod.spec.certain is None else pod.spec.certain)[resource.name]


def _by_bands(resource: _Resource, pods: list[Pod], bands: Mapping[str, Model], warm: bool) -> _Predictor:
    staying = [pod for pod in pods if not pod.deleting]
    peaks = {name: resource.percentile(model) for name, model in bands.items()}
    total = sum(peaks.values())
    margin = resource.with_margin(total) - total
    peak, left = TermSum(), TermSum()
    left.add("requests", sum(_certain(pod, resource) for pod in staying), f"{len(staying)} production pods")
    for terms, sign in ((peak, 1), (left, -1)):
        for name, amount in peaks.items():
            terms.add(name, sign * amount, f"p{resource.percentile_pct}")
        terms.add("safety margin", sign * margin, f"{resource.margin_pct} % of the peaks")
    left.at_least("floor", 0, "production needs more than it asked for")
    if not warm:
        left.at_most("cold start", 0, "the system or a band was watched too briefly")
    return _Predictor("bands", peak, resource.bounded(left, peak))


def _decide(resource: _Resource, facts: PredictionFacts, *predictors: _Predictor) -> tuple[Decision, Decision]:
    """(reclaimable: the lower one, peak: the higher one); the first predictor on a tie."""
    left = {predictor.name: predictor.reclaimable for predictor in predictors}
    peaks = {predictor.name: predictor.peak for predictor in predictors}
    lowest = min(left, key=lambda name: left[name].value)
    highest = max(peaks, key=lambda name: peaks[name].value)
    return (
        _decision(resource, facts, f"prod-reclaimable-{resource.name}", left, lowest),
        _decision(resource, facts, f"prod-peak-{resource.name}", peaks, highest),
    )


def _decision(
    resource: _Resource, facts: PredictionFacts, name: str, views: Mapping[str, TermSum], chosen: str
) -> Decision:
    return Decision(
        subject=f"node/{facts.node}",
        name=name,
        value=views[chosen].value,
        unit=resource.unit,
        reason=Reason.COMPUTED,
        terms=views[chosen].terms,
        policy=chosen,
        at_seconds=facts.at_seconds,
        detail=", ".join(f"by {view} {terms.value}" for view, terms in views.items()),
    )
