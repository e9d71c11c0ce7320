"""Findings of the checks before installation, and what follows from them."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How far a finding goes: all works, something works less well, or Sublet refuses to act."""

    OK = "ok"
    LIMITED = "limited"
    REFUSED = "refused"


class Finding(msgspec.Struct, frozen=True):
    """One row of the table: `check` is what was looked at, `found` what is there, `effect` what follows, `fix` how to
    mend it (empty: nothing to mend)."""

    check: str
    found: str
    effect: str = ""
    verdict: Severity = Severity.OK
    fix: str = ""


def refused(findings: tuple[Finding, ...]) -> bool:
    """Whether any of them forbids to go on."""
    return any(finding.verdict is Severity.REFUSED for finding in findings)
