"""Documents as Koordinator's manuals have them: own wording, their fields. Each is done, warned of, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import yaml

FOLDER = Path(__file__).parent / "manuals"
ROOT = Path(__file__).parents[2]
_BUILT_IN = frozenset({"ConfigMap", "Pod", "Node", "Job", "Deployment", "StatefulSet", "PriorityClass"})


class Verdict(StrEnum):
    """What becomes of a document: accepted and done, accepted with warnings, refused with a sentence."""

    DONE = "done"
    WARNED = "warned"
    REFUSED = "refused"


class Manual(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`words` stand in the warnings, or in the refusal."""

    manual: str
    verdict: Verdict
    document: dict[str, Any]
    words: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        found: str = self.document["kind"]
        return found


def manuals() -> dict[str, Manual]:
    """By manual."""
    files = sorted(FOLDER.glob("*.yaml"))
    listed = [each for file in files for each in msgspec.convert(yaml.safe_load(file.read_text()), list[Manual])]
    found = {each.manual: each for each in listed}
    assert len(found) == len(listed), "two documents of one name"
    return found


def installed(document: Mapping[str, Any]) -> bool:
    """Whether a cluster with Sublet knows the kind."""
    group, kind = document["apiVersion"].partition("/")[0], document["kind"]
    if kind in _BUILT_IN:
        return True
    return any(
        re.search(rf"^  group: {re.escape(group)}$", text, re.MULTILINE)
        and re.search(rf"^    kind: {kind}$", text, re.MULTILINE)
        for text in (file.read_text() for file in (ROOT / "deploy/crds").rglob("*.yaml"))
    )
