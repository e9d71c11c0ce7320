"""Times as Kubernetes objects have them: metav1.Time, whole seconds in UTC."""

from __future__ import annotations

from datetime import datetime


def stamp(moment: datetime) -> str:
    """A metav1.Time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str | None) -> datetime | None:
    """A metav1.Time read back; None when absent or unreadable."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
