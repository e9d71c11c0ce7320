"""Whose cgroup it is that a static pod's mirror speaks of."""

from __future__ import annotations

import pytest

from agent.core.observe.mirror_pods import DISPUTED, undisputed
from model.pod.pod import Pod


def pod(uid: str, cgroup_uid: str = "") -> Pod:
    return Pod("ns", uid, uid, cgroup_uid=cgroup_uid)


CASES = {
    "no mirror": ([pod("a"), pod("b", "b")], ["", "b"]),
    "a mirror": ([pod("a"), pod("m", "hash")], ["", "hash"]),
    "two static pods": ([pod("m", "hash"), pod("n", "other")], ["hash", "other"]),
    "a mirror of another pod": ([pod("a"), pod("m", "a")], ["", DISPUTED]),
    "a mirror of another pod that knows its own": ([pod("m", "a"), pod("a", "a")], [DISPUTED, "a"]),
    "two mirrors of one static pod": ([pod("m", "hash"), pod("n", "hash")], [DISPUTED, DISPUTED]),
    "a mirror of a mirror": ([pod("m", "hash"), pod("n", "m")], ["hash", DISPUTED]),
}


@pytest.mark.parametrize(("pods", "expected"), CASES.values(), ids=CASES)
def test_whose_it_is(pods: list[Pod], expected: list[str]) -> None:
    """The pod's whose uid it is; of two mirrors neither's."""
    found = undisputed(pods)
    assert [each.cgroup_uid for each in found] == expected and [each.uid for each in found] == [p.uid for p in pods]
