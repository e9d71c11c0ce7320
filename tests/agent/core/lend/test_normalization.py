"""Which CPU normalization ratio holds."""

from __future__ import annotations

import pytest

from agent.core.lend.normalization import Ratio, normalization_ratio
from model.nodecolocation import LABEL_NORMALIZATION
from model.strategy import NormalizationStrategy, RatioModel
from model.topology import CpuBasics

MODEL = RatioModel(base=1.5, hyper_threading=1.0, turbo=1.8, hyper_threading_turbo=1.234)
ON = NormalizationStrategy(enable=True, models={"X": MODEL})
OFF = NormalizationStrategy(enable=False, models={"X": MODEL})
UNSET = NormalizationStrategy(largest_annotated_ratio=5.0)
X = CpuBasics("X")


@pytest.mark.parametrize(
    ("hyper_threading", "turbo", "ratio"),
    [(False, False, 1.5), (True, False, 1.0), (False, True, 1.8), (True, True, 1.23)],
)
def test_the_model_by_what_is_switched_on(hyper_threading: bool, turbo: bool, ratio: float) -> None:
    """Two decimals, as it is written to the Node."""
    cpu = CpuBasics("X", hyper_threading=hyper_threading, turbo=turbo)
    assert normalization_ratio(ON, {}, cpu, None) == Ratio(ratio, ratio)


SWITCH: dict[str, tuple[NormalizationStrategy, str | None, float | None, float | None]] = {
    # strategy, label, annotation, ratio of a machine of 1.5
    "on": (ON, None, None, 1.5),
    "off": (OFF, None, None, 1.0),
    "off, whatever the Node says": (OFF, None, 2.0, 1.0),
    "on, whatever the Node says": (ON, None, 2.0, 1.5),
    "label on": (OFF, "true", None, 1.5),
    "label off": (ON, "false", None, 1.0),
    "labels in other spellings": (OFF, "1", None, 1.5),
    "a label that cannot be read": (ON, "yes", None, None),
    "not configured": (UNSET, None, None, None),
    "not configured, kept by somebody else": (UNSET, None, 1.301, 1.3),
    "not configured, label on": (UNSET, "true", 1.3, 1.3),
    "not configured, label off": (UNSET, "false", 1.3, 1.0),
    "not configured, and not allowed": (NormalizationStrategy(), None, 5.0, 1.0),
    "not configured, label on, and not allowed": (NormalizationStrategy(), "true", 5.0, 1.0),
    "not configured, allowed in part": (NormalizationStrategy(largest_annotated_ratio=1.2), None, 5.0, 1.2),
    "an annotation out of range": (UNSET, None, 5.01, None),
    "an annotation below one": (UNSET, None, 0.9, None),
}


@pytest.mark.parametrize(("strategy", "label", "annotated", "ratio"), SWITCH.values(), ids=SWITCH.keys())
def test_what_switches_it(
    strategy: NormalizationStrategy, label: str | None, annotated: float | None, ratio: float | None
) -> None:
    """The label beats the strategy, the strategy beats the annotation."""
    labels = {} if label is None else {LABEL_NORMALIZATION: label}
    assert normalization_ratio(strategy, labels, X, annotated).used == ratio


@pytest.mark.parametrize(("label", "written"), [(None, None), ("true", None), ("false", 1.0), ("yes", None)])
def test_a_ratio_that_somebody_else_keeps_is_left_to_them(label: str | None, written: float | None) -> None:
    """Also where it is written otherwise than this agent would write it; off is said aloud."""
    labels = {} if label is None else {LABEL_NORMALIZATION: label}
    assert normalization_ratio(UNSET, labels, X, 1.5).written == written


@pytest.mark.parametrize(
    ("model", "default", "cpu", "ratio"),
    [
        (RatioModel(base=1.0), None, X, 1.0),
        (RatioModel(base=5.0), None, X, 5.0),
        (RatioModel(base=0.82), None, X, None),
        (RatioModel(base=5.2), None, X, None),
        (RatioModel(base=float("nan")), None, X, None),
        (RatioModel(turbo=1.5), None, X, None),
        (RatioModel(turbo=1.5), 1.1, X, 1.1),
        (MODEL, None, CpuBasics("Y"), None),
        (MODEL, 1.1, CpuBasics("Y"), 1.1),
        (MODEL, 7.0, CpuBasics("Y"), None),
        (MODEL, 1.1, None, None),
    ],
)
def test_a_ratio_that_cannot_be_told_multiplies_nothing(
    model: RatioModel, default: float | None, cpu: CpuBasics | None, ratio: float | None
) -> None:
    """Out of 1.0 to 5.0, a model without an entry or default, or unknown CPUs."""
    strategy = NormalizationStrategy(enable=True, default_ratio=default, models={"X": model})
    assert normalization_ratio(strategy, {}, cpu, 2.0) == Ratio(ratio, ratio)
