"""The quick start's manifests are applied as they stand, and what became of their pods is told in few words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kube.objects import Condition, Metadata, Pod, PodStatus
from local.demo import manifests
from model.fault import ConfigurationFault


def bound(name: str, at: str | None) -> Pod:
    """A pod that was bound at a time, or is not."""
    conditions = [Condition("PodScheduled", "True", last_transition_time=at)] if at else []
    return Pod(Metadata(name=name), status=PodStatus("Running", conditions=conditions))


@pytest.mark.parametrize(
    ("case", "times", "expected"),
    [
        ("at once", ["2026-01-01T00:00:01Z", "2026-01-01T00:00:01Z"], 0.0),
        ("a second apart", ["2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z"], 1.0),
        ("one is not bound", ["2026-01-01T00:00:02Z", None], None),
    ],
)
def test_how_far_apart_members_were_bound(case: str, times: list[str | None], expected: float | None) -> None:
    """From the condition that Kubernetes keeps; None where one has none."""
    assert manifests.bound_apart_seconds([bound("p", at) for at in times]) == expected


def test_documents_are_read_in_order() -> None:
    """A file with several documents gives all of them."""
    kinds = [document["kind"] for document in manifests.documents("1-service.yaml", "3-gang.yaml")]
    assert kinds == ["Pod", "PodGroup", "Job"]


def test_a_missing_file_is_a_configuration_fault(tmp_path: Path) -> None:
    """Naming the file, as from an installation without the examples."""
    with pytest.raises(ConfigurationFault, match=r"1-service\.yaml: unreadable"):
        manifests.documents("1-service.yaml", directory=tmp_path)


def test_environment_is_replaced_by_name_and_the_original_kept() -> None:
    """Variables that are not named stay, also those without a plain value."""
    (service,) = manifests.documents("1-service.yaml")
    changed = manifests.with_environment(service, {"PORT": "1234"})
    (container,) = changed["spec"]["containers"]
    assert {v["name"]: v.get("value") for v in container["env"]} == {"PORT": "1234", "BIND": None, "ROUNDS": "16000"}
    assert manifests.with_environment(service, {}) == service


def test_a_variable_that_came_from_a_field_has_a_plain_value_afterwards() -> None:
    """The API server refuses one that has both."""
    (service,) = manifests.documents("1-service.yaml")
    (container,) = manifests.with_environment(service, {"BIND": "127.0.0.1"})["spec"]["containers"]
    (bind,) = [variable for variable in container["env"] if variable["name"] == "BIND"]
    assert bind == {"name": "BIND", "value": "127.0.0.1"}


def looker(*answers: bool | None) -> Callable[[], Awaitable[bool | None]]:
    """Answers in turn, the last one for ever."""
    left = list(answers)

    async def look() -> bool | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return look


@pytest.mark.parametrize(("case", "answers", "expected"), [("late", (None, True), True), ("never", (None,), None)])
def test_waiting_is_bounded(case: str, answers: tuple[bool | None, ...], expected: bool | None) -> None:
    """The first answer that is something, or None once the bound has passed."""
    assert asyncio.run(manifests.wait_for(looker(*answers), 0.25)) is expected
