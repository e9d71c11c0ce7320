"""The columns of roles and bindings. Source: kubernetes `pkg/printers/internalversion/printers.go`."""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.presentation.columns import AGE, NAME, Cell, Column, path


def _role(binding: Object, _: float) -> str:
    return f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Object, _: float) -> str:
        found = (subject for subject in binding.get("subjects") or () if subject["kind"] == kind)
        return ", ".join(_named(subject) for subject in found)

    return cell


def _named(subject: Object) -> str:
    account = subject["kind"] == "ServiceAccount"
    return f"{subject.get('namespace', '')}/{subject['name']}" if account else str(subject["name"])


ROLE = (NAME, Column("Created At", path("metadata.creationTimestamp"), "date"))
BINDING = (
    NAME,
    Column("Role", _role),
    AGE,
    Column("Users", _subjects("User"), priority=1),
    Column("Groups", _subjects("Group"), priority=1),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)
