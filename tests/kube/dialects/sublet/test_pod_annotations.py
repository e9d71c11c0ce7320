"""Our own annotations."""

from __future__ import annotations

import pytest

from kube.dialects.sublet.pod_annotations import ANNOTATION_NOTICE, notice_seconds

NOTICES = {"30": 30.0, " 2.5 ": 2.5, "0": 0.0, "": 0.0, "-1": 0.0, "1e9": 0.0, "nan": 0.0, "30s": 0.0, "1234567": 0.0}


@pytest.mark.parametrize(("text", "expected"), NOTICES.items(), ids=[repr(text) for text in NOTICES])
def test_notice(text: str, expected: float) -> None:
    """Seconds, or none."""
    assert notice_seconds({ANNOTATION_NOTICE: text}) == expected
    assert notice_seconds({}) == 0.0
