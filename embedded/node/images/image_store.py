"""Images as directories of this machine: `<store>/<repository>/<tag>/rootfs/` and `config.json` beside it.

`config.json` is the `config` object of an OCI image. An image that is not there is a label only, see images.
Source: https://github.com/opencontainers/image-spec/blob/main/config.md
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from embedded.node.images.users import Accounts
from embedded.node.objects.environment import SEARCH_PATH

_LINKS = 40
_ACCOUNT_BYTES = 1 << 20
_DEFAULT_REGISTRY = ("docker.io/library/", "docker.io/")


class ImageConfig(msgspec.Struct, frozen=True, rename="pascal"):
    """What an image says of how it is run."""

    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    env: list[str] | None = None
    user: str = ""
    working_dir: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """With a PATH in any case."""
        return {"PATH": SEARCH_PATH} | dict(_pair(each) for each in self.env or [])


class Image(msgspec.Struct, frozen=True):
    root: Path
    config: ImageConfig = ImageConfig()

    def accounts(self) -> Accounts:
        return Accounts(self._text("/etc/passwd"), self._text("/etc/group"))

    def inside(self, path: Path) -> Path:
        """Where a path of the container is on this machine; links lead where they lead in the container."""
        return inside(self.root, path)

    def _text(self, path: str) -> str:
        try:
            with self.inside(Path(path)).open("rb") as file:
                return file.read(_ACCOUNT_BYTES).decode(errors="replace")
        except OSError:
            return ""


class ImageStore:
    """`directory` is None where there are no images."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, reference: str) -> Image | None:
        """Raises ValueError naming a config that cannot be read."""
        if self._directory is None:
            return None
        for name in names(reference):
            place = self._directory / name
            if (place / "rootfs").is_dir():
                return Image((place / "rootfs").resolve(), _read(place / "config.json"))
        return None


def names(reference: str) -> list[str]:
    """`docker.io/library/web:1` → where to look: as written, then without what Docker leaves out."""
    plain = reference.partition("@")[0]
    repository, colon, tag = plain.rpartition(":")
    if not colon or "/" in tag:
        repository, tag = plain, "latest"
    short = next((repository.removeprefix(each) for each in _DEFAULT_REGISTRY if repository.startswith(each)), "")
    wanted = [f"{each}/{tag}" for each in (repository, short) if each]
    return [each for each in wanted if not {"", ".", ".."} & set(each.split("/"))]


def inside(root: Path, path: Path) -> Path:
    """`path` below `root` as if that were the root: no link and no `..` leads out of it."""
    place, left, links = root, list(reversed(path.parts)), 0
    while left:
        part = left.pop()
        if part in ("/", ".."):
            place = root if part == "/" or place == root else place.parent
            continue
        step = place / part
        links += step.is_symlink()
        if step.is_symlink() and links <= _LINKS:
            left += reversed(step.readlink().parts)
        else:
            place = step
    return place


def _read(file: Path) -> ImageConfig:
    try:
        return msgspec.json.decode(file.read_bytes(), type=ImageConfig)
    except FileNotFoundError:
        return ImageConfig()
    except (OSError, msgspec.MsgspecError) as error:
        raise ValueError(f"{file}: {error}") from error


def _pair(variable: str) -> tuple[str, str]:
    name, _, value = variable.partition("=")
    return name, value
