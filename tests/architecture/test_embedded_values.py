"""Values that Sublet and the embedded cluster both need, and neither may import of the other, are the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
COPIES = {
    "embedded/quantity.py": "model/quantity.py",
    "embedded/apiserver/managedfields/merge_patch.py": "kube/strategic.py",
}


@pytest.mark.parametrize(("copy", "original"), COPIES.items())
def test_copies_are_kept_equal(copy: str, original: str) -> None:
    """Who mends one mends both."""
    assert (ROOT / copy).read_text() == (ROOT / original).read_text()
