"""Directories go with what the node mounted in them, and never with what somebody else shows there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from embedded.node.processes import mount_namespace, mounting

BIND = 4096


def test_mount_points() -> None:
    """Blanks and backslashes are octal, every other byte is as it is."""
    mountinfo = "36 35 98:0 / /a\\040b rw - ext4 x rw\n37 35 98:0 / /höme/\\134x\\ntmpfs rw - tmpfs x rw\n".encode()
    assert mounting.mount_points(mountinfo) == ["/a b", "/höme/\\x\\ntmpfs"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Path]:
    """A directory with a file, shown at `pöd/with blank` and over `pöd2` itself."""
    if os.geteuid() != 0:
        pytest.skip("run as root")
    made = tmp_path / "host"
    made.mkdir()
    (made / "precious").write_text("mine")
    places = [tmp_path / "pöd" / "with blank", tmp_path / "pöd2"]
    for place in places:
        place.mkdir(parents=True)
        try:
            mount_namespace.mount(str(made), str(place), None, BIND)
        except OSError:
            pytest.skip("this machine lets nobody mount")
    yield made
    for place in places:
        with suppress(OSError):
            mount_namespace.unmount(str(place))


def test_a_bind_mount_is_taken_away_first(host: Path) -> None:
    """Below the directory or in its place; what it showed is untouched."""
    for name in ("pöd", "pöd2"):
        mounting.remove(host.parent / name)
        assert not (host.parent / name).exists()
    assert (host / "precious").read_text() == "mine"


def test_what_stays_mounted_is_not_emptied(host: Path) -> None:
    """Where unmounting is refused the directory stays as it is."""

    def refuse(place: str) -> None:
        raise PermissionError(place)

    mounting.remove(host.parent / "pöd", refuse)
    assert (host.parent / "pöd" / "with blank" / "precious").read_text() == "mine"


def test_a_link_leads_nowhere(host: Path) -> None:
    """A pod put one in its directory's place: neither mounts nor files at its end are touched."""
    link = host.parent / "link"
    link.symlink_to(host.parent / "pöd")
    mounting.remove(link)
    assert (host.parent / "pöd" / "with blank" / "precious").read_text() == "mine"
