"""A settings file is read as a whole or refused in one line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kube.settingsfile import read_settings
from model.fault import ConfigurationFault
from tests.kube.test_yamldocuments import INVALID


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seconds: int = 3


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stands for a program's."""

    limits: Limits = Limits()
    name: str = "a"


GOOD = {
    "nothing": ("", Settings()),
    "comments alone": ("# later\n", Settings()),
    "YAML": ("limits: {seconds: 5}", Settings(Limits(5))),
    "JSON": ('{"name": "b"}', Settings(name="b")),
}


@pytest.mark.parametrize(("text", "settings"), GOOD.values(), ids=GOOD)
def test_what_is_read(text: str, settings: Settings, tmp_path: Path) -> None:
    """What the file does not name keeps its default."""
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    assert read_settings(path, Settings) == settings


def test_no_file() -> None:
    assert read_settings(None, Settings) == Settings()


BAD: dict[str, tuple[bytes, str]] = {
    "a misspelt field": (b"limits: {second: 5}", "unknown field `second` - at `$.limits`"),
    "another type": (b"limits: {seconds: soon}", "$.limits.seconds"),
    "not a mapping": (b"- 1", "Expected `object"),
    "no YAML": (b"limits: {", "settings.yaml"),
    "no text": (b"\xff\xfe\xff", "settings.yaml"),
}


@pytest.mark.parametrize(("content", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_named(content: bytes, words: str, tmp_path: Path) -> None:
    """File and field in one line, and where the fields are listed."""
    path = tmp_path / "settings.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationFault) as caught:
        read_settings(path, Settings)
    told = str(caught.value)
    assert words in told and "docs/settings.md" in told and "\n" not in told


@pytest.mark.parametrize(("text", "told"), INVALID.values(), ids=INVALID)
def test_what_is_no_yaml(text: str, told: str, tmp_path: Path) -> None:
    """Whatever the reader meets in it, and in one line."""
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationFault) as caught:
        read_settings(path, Settings)
    assert str(caught.value).startswith(f"{path}: ") and told in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationFault, match=r"no\.yaml: cannot be read: No such file.*--settings"):
        read_settings(tmp_path / "no.yaml", Settings)
