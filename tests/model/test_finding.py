"""One finding that refuses is enough."""

from __future__ import annotations

import pytest

from model.finding import Finding, Severity, refused

OK, LIMITED, REFUSED = (Finding("c", "f", verdict=verdict) for verdict in Severity)


@pytest.mark.parametrize(
    ("findings", "wanted"),
    [((), False), ((OK, LIMITED), False), ((REFUSED,), True), ((OK, REFUSED, LIMITED), True)],
)
def test_refused(findings: tuple[Finding, ...], wanted: bool) -> None:
    """What is merely limited goes on."""
    assert refused(findings) is wanted
