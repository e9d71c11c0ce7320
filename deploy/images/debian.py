"""The part of an image that is Debian's: the interpreter and the libraries it and the wheels are linked to."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
PACKAGES = {
    "libc6": "the C library, and the loader",
    "libgcc-s1": "exceptions of C++ in grpcio",
    "libstdc++6": "grpcio",
    "python3.11-minimal": "the interpreter",
    "libpython3.11-minimal": "the modules it starts with",
    "libpython3.11-stdlib": "the standard library",
    "libexpat1": "the interpreter",
    "zlib1g": "the interpreter, gzip",
    "libssl3": "ssl and hashlib",
    "libffi8": "ctypes",
    "liblzma5": "lzma, which shutil loads",
    "libbz2-1.0": "bz2, which shutil loads",
    "libuuid1": "uuid",
    "libsqlite3-0": "sqlite3, which pyroute2 loads",
    "ca-certificates": "public authorities, for a kubeconfig that names none",
}
"""Each with who needs it. No shell, no apt, no dpkg; no time zones, since every time is in UTC."""
_ALIASES = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
"""Merged /usr, as Debian 12 installs it."""
_KEPT = ("usr/bin/python3", "usr/lib/", "usr/lib64/", "usr/share/ca-certificates/mozilla/")
_DROPPED_MODULES = (
    # The libraries of these are not in the image.
    *("_curses", "_curses_panel", "curses", "readline", "_dbm", "nis", "_crypt", "ossaudiodev"),
    # Tests, editors, installers.
    *("test", "idlelib", "lib2to3", "tkinter", "turtledemo", "ensurepip", "distutils", "pydoc_data"),
)


def unpack(root: Path, arch: str, cache: Path) -> list[str]:
    """Fill `root`; `name version` of each package. Raises CalledProcessError where a package cannot be had."""
    (root / "usr").mkdir(parents=True)
    for name, target in _ALIASES.items():
        (root / target).mkdir(exist_ok=True)
        (root / name).symlink_to(target)
    archives = [_download(name, arch, cache) for name in PACKAGES]
    for archive in archives:
        _unpack_one(archive, root, arch)
    (root / "usr/bin/python3").symlink_to("python3.11")
    _bundle_authorities(root)
    return [_described(archive) for archive in archives]


def _download(name: str, arch: str, cache: Path) -> Path:
    """The newest of Debian 12 and its security updates; a package in the cache is taken as it is."""
    state = cache / f"debian-{arch}"
    if found := sorted(state.glob(f"{name}_*.deb")):
        return found[-1]
    options = _apt_options(state, arch)
    if not any((state / "lists").glob("*_Packages*")):
        _run("apt-get", *options, "update", folder=state)
    _run("apt-get", *options, "download", f"{name}:{arch}", folder=state)
    return sorted(state.glob(f"{name}_*.deb"))[-1]


def _apt_options(state: Path, arch: str) -> list[str]:
    """Lists and caches of its own: no root, and lists of another architecture beside the machine's."""
    for folder in ("lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    status = state / "status"
    status.touch()
    at = state.resolve()
    settings = {
        "Dir::State": at, "Dir::State::lists": at / "lists", "Dir::State::status": at / "status",
        "Dir::Cache": at, "Dir::Cache::archives": at / "archives",
        "APT::Architecture": arch, "APT::Architectures": arch, "APT::Sandbox::User": "root",
        "Acquire::Languages": "none", "Acquire::Retries": 2, "Acquire::http::Timeout": 60,
    }  # fmt: skip
    return ["-qq", *(f"-o{key}={value}" for key, value in settings.items())]


def _run(*command: str, folder: Path) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    subprocess.run(command, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL)


def _unpack_one(archive: Path, root: Path, arch: str) -> None:
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as entries:
        for entry in entries:
            name = _merged(entry.name)
            if _wanted(name, arch):
                _place(entries, entry, root / name)


def _place(entries: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        path.symlink_to(entry.linkname)
    elif entry.isfile() and (content := entries.extractfile(entry)):
        path.write_bytes(content.read())
        path.chmod(entry.mode & 0o777)


def _merged(name: str) -> str:
    first, slash, rest = name.removeprefix("./").partition("/")
    return f"{_ALIASES.get(first, first)}{slash}{rest}"


def _wanted(name: str, arch: str) -> bool:
    if name.startswith("usr/share/doc/"):
        return name.endswith("/copyright")
    if name.startswith("usr/lib/python3.11/"):
        parts = {part.partition(".")[0] for part in name.split("/")[3:]}
        return not parts.intersection(_DROPPED_MODULES)
    # gconv holds charsets beyond UTF-8, audit a debugging aid of the loader.
    unused = (f"usr/lib/{TRIPLETS[arch]}/gconv", f"usr/lib/{TRIPLETS[arch]}/audit", "usr/lib/binfmt.d", "usr/lib/mime")
    return name.startswith(_KEPT) and not name.startswith(unused)


def _bundle_authorities(root: Path) -> None:
    """What update-ca-certificates does, without a shell."""
    single = root / "usr/share/ca-certificates/mozilla"
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(b"".join(path.read_bytes() for path in sorted(single.glob("*.crt"))))
    for path in single.glob("*.crt"):
        path.unlink()
    # Debian's OpenSSL looks below /usr/lib/ssl.
    (root / "usr/lib/ssl").mkdir(exist_ok=True)
    for name, target in (("certs", "/etc/ssl/certs"), ("cert.pem", "/etc/ssl/certs/ca-certificates.crt")):
        link = root / "usr/lib/ssl" / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _described(archive: Path) -> str:
    name, number, _ = archive.name.split("_")
    return f"{name} {number.replace('%3a', ':')}"
