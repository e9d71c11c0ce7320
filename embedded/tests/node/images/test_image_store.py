"""Images are found by their reference, and nothing in one leads out of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embedded.node.images.image_store import ImageConfig, ImageStore, inside, names


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("web", ["web/latest"]),
        ("web:1", ["web/1"]),
        ("docker.io/library/web:1", ["docker.io/library/web/1", "web/1"]),
        ("docker.io/me/web", ["docker.io/me/web/latest", "me/web/latest"]),
        ("host:5000/web", ["host:5000/web/latest"]),
        ("web:1@sha256:00", ["web/1"]),
        ("a/../web:1", []),
        ("web:..", []),
        ("/etc:1", []),
        ("", []),
    ],
)
def test_names(reference: str, expected: list[str]) -> None:
    """Repository and tag are directories; a way out of the store is no name."""
    assert names(reference) == expected


def test_find(tmp_path: Path) -> None:
    """With its config, without one, with a broken one, and not at all."""
    for name in ("full/1", "plain/1", "broken/1"):
        (tmp_path / name / "rootfs").mkdir(parents=True)
    config = {"Entrypoint": ["run"], "Cmd": ["a"], "Env": ["A=b=c", "N"], "User": "1:2", "WorkingDir": "/w", "X": 1}
    (tmp_path / "full/1/config.json").write_text(json.dumps(config))
    (tmp_path / "broken/1/config.json").write_text("{")
    store = ImageStore(tmp_path)
    full, plain = store.find("full:1"), store.find("plain:1")
    assert full and full.config == ImageConfig(["run"], ["a"], ["A=b=c", "N"], "1:2", "/w")
    assert full.config.variables == {"PATH": ImageConfig().variables["PATH"], "A": "b=c", "N": ""}
    assert plain and plain.config == ImageConfig() and plain.root == tmp_path / "plain/1/rootfs"
    assert store.find("plain:2") is None and ImageStore(None).find("plain:1") is None
    with pytest.raises(ValueError, match=r"broken/1/config\.json"):
        store.find("broken:1")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/bin/sh", "usr/bin/sh"),
        ("/bin/absolute", "usr/bin/sh"),
        ("/out/passwd", "etc/passwd"),
        ("/../../etc/passwd", "etc/passwd"),
        ("/up/x", "etc/x"),
        ("/none/here", "none/here"),
    ],
)
def test_inside(tmp_path: Path, path: str, expected: str) -> None:
    """Links and dots are followed as if the image were the root."""
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/sh").touch()
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr/bin/absolute").symlink_to("/bin/sh")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "up").symlink_to("../../../../../../../../etc")
    assert inside(tmp_path, Path(path)) == tmp_path / expected


def test_accounts(tmp_path: Path) -> None:
    """Read from the image, also through a link that would lead to the machine's own; missing files are empty."""
    (tmp_path / "x/1/rootfs/etc").mkdir(parents=True)
    (tmp_path / "x/1/rootfs/etc/passwd").symlink_to("/own")
    (tmp_path / "x/1/rootfs/own").write_text("me:x:1:1::/:/\n")
    image = ImageStore(tmp_path).find("x:1")
    assert image and (image.accounts().passwd, image.accounts().group) == ("me:x:1:1::/:/\n", "")


def test_links_in_a_circle(tmp_path: Path) -> None:
    """End somewhere below the root."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("/a")
    assert inside(tmp_path, Path("/a/x")).is_relative_to(tmp_path)
