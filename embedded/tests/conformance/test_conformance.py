"""Every behaviour of the list, through every client that it names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.tests.conformance.behaviour import Behaviour, Via
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.kubectl import binaries
from embedded.tests.conformance.listing import BEHAVIOURS

pytestmark = pytest.mark.e2e
_PAGES = ("https://kubernetes.io/docs/", "https://github.com/kubernetes/community/")


def _clients(behaviour: Behaviour) -> Iterator[tuple[str, bool]]:
    """The clients to check it through, and whether each is fast; of kubectl only the newest ever is."""
    if Via.RAW in behaviour.via:
        yield "raw", Via.RAW in behaviour.fast
    if Via.PYTHON in behaviour.via:
        yield "python", Via.PYTHON in behaviour.fast
    if Via.KUBECTL in behaviour.via:
        versions = list(binaries())
        for version in versions:
            yield version, Via.KUBECTL in behaviour.fast and version == versions[-1]


def _runs() -> Iterator[object]:
    for behaviour in BEHAVIOURS:
        for client, fast in _clients(behaviour):
            label = client if client in ("raw", "python") else f"kubectl-{client}"
            marks = () if fast else (pytest.mark.slow,)
            yield pytest.param(behaviour, client, id=f"{behaviour.name}-{label}", marks=marks)


@pytest.mark.parametrize(("behaviour", "client"), [*_runs()])
def test_the_server_behaves_as_documented(behaviour: Behaviour, client: str, case: Case) -> None:
    """As the page says that the behaviour names."""
    try:
        behaviour.run(case)
    except Refused as refused:
        # An administrator's refusal says nothing about the server.
        if case.foreign and refused.reason == "Forbidden" and " cannot " in refused.message:
            pytest.skip(refused.message)
        raise


def test_the_list_is_long_and_each_entry_says_where_it_is_from() -> None:
    """At least 150 behaviours with names of their own, every one with its page and a client."""
    names = [behaviour.name for behaviour in BEHAVIOURS]
    assert len(names) >= 150
    assert len(set(names)) == len(names)
    assert [b.name for b in BEHAVIOURS if not b.page.startswith(_PAGES) or not b.via] == []
