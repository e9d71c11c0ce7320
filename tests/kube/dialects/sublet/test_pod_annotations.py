"""Our own annotations."""

from __future__ import annotations

import pytest

from kube.dialects.sublet.pod_annotations import (
    ANNOTATION_MINIMUM_MEMBER,
    ANNOTATION_NOTICE,
    minimum_member,
    notice_seconds,
)

NOTICES = {"30": 30.0, " 2.5 ": 2.5, "0": 0.0, "": 0.0, "-1": 0.0, "1e9": 0.0, "nan": 0.0, "30s": 0.0, "1234567": 0.0}


@pytest.mark.parametrize(("text", "expected"), NOTICES.items(), ids=[repr(text) for text in NOTICES])
def test_notice(text: str, expected: float) -> None:
    """Seconds, or none."""
    assert notice_seconds({ANNOTATION_NOTICE: text}) == expected
    assert notice_seconds({}) == 0.0


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("false", False), ("True", False), ("", False)])
def test_minimum_member(text: str, expected: bool) -> None:
    """The one word alone; without it any member is as good as the next."""
    assert minimum_member({ANNOTATION_MINIMUM_MEMBER: text}) is expected
    assert not minimum_member({})
