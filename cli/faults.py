"""Errors that are told in one line: Sublet's own faults, and the embedded cluster's once that is loaded."""

from __future__ import annotations

import sys

from model.fault import Fault

_LOCAL = ("local", "embedded")


def faults() -> tuple[type[Exception], ...]:
    """For an `except` clause, which asks only once something was raised."""
    embedded = sys.modules.get("embedded.fault")
    return (Fault,) if embedded is None else (Fault, embedded.Fault)


def missing_part(error: ModuleNotFoundError) -> str:
    """What to install where a command needs what production installations leave out; empty for any other module."""
    if (error.name or "").partition(".")[0] not in _LOCAL:
        return ""
    return "this command needs the embedded cluster, which is not installed here: pip install 'sublet[local]'"
