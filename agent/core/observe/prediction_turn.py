"""Prediction within a tick: learn once a training interval, look ahead each time."""

from __future__ import annotations

from agent.core.observe.prediction import (
    Prediction,
    PredictionFacts,
    PredictionPolicy,
    PredictionState,
    due,
    peak_samples,
    predict,
    train,
)
from agent.core.observe.usage import UsageState, minute_peaks


def learn_and_predict(
    state: PredictionState, used: UsageState, about: PredictionFacts | None, policy: PredictionPolicy
) -> tuple[PredictionState, Prediction | None]:
    """The state after this tick, and production's peak; None where node or pods are not known."""
    if about is None:
        return state, None
    if due(state, about.at_seconds, policy):
        peaks = minute_peaks(used)
        samples = peak_samples(about.pods, peaks.pods, peaks.node, peaks.outside_pods)
        state = train(state, samples, about.at_seconds, policy)
    return state, predict(state, about, policy)
