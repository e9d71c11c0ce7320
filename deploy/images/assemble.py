"""Makes the root file system of one of Sublet's images, the same with a container engine and without.

    python3 deploy/images/assemble.py agent --out build/images

writes OUT/sublet-agent/VERSION/rootfs/, config.json (the `config` object of an OCI image) and an OCI archive that
`ctr images import`, `podman load` and `skopeo` read. It needs Debian 12's apt-get (`update` and `download` into folders
of its own, never `install`), dpkg-deb, Python 3.11 with pip, and no root. The same inputs give the same bytes: file
times are SOURCE_DATE_EPOCH, owners are root, entries are sorted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import debian
import ociarchive
import pythonpackages

SOURCE = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("agent", "scheduler", "admission")
USER = 65532
"""Of the image; the agent's manifest asks for root, since control files of the kernel belong to root."""
_ACCOUNTS = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nsublet:x:{USER}:{USER}:sublet:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nsublet:x:{USER}:\n",
    # Without it glibc asks DNS only, and the hosts file that the kubelet writes would go unread.
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_COMMAND = "#!/usr/bin/python3 -I\nfrom cli.entry import run\n\nrun()\n"


class ImageFault(Exception):
    """What somebody can mend; its text says how."""


def main(argv: list[str]) -> int:
    """Exit code 2 with one line on standard error for what somebody can mend."""
    arguments = _parser().parse_args(argv)
    try:
        _require_debian()
        for program in arguments.program or PROGRAMS:
            print(assemble(program, arguments.arch, arguments.out, arguments.cache))
    except (ImageFault, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def assemble(program: str, arch: str, out: Path, cache: Path, source: Path = SOURCE) -> Path:
    """The folder with rootfs/ and config.json; what stood there is replaced once the new one is whole."""
    folder = out / f"sublet-{program}" / version()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as scratch:
        root = Path(scratch) / "rootfs"
        _tell(f"{program}: Debian's packages, downloaded into {cache} the first time")
        listed = [f"debian {name}" for name in debian.unpack(root, arch, cache)]
        _tell(f"{program}: Python packages")
        listed += [f"python {name}" for name in pythonpackages.install(root, program, arch, source, cache)]
        _own_files(root, listed)
        if program == "agent":
            _command(root, "sublet-probe", f"#!/usr/bin/python3 -IS\n{(source / 'agent/probe.py').read_text()}")
        settle(root, epoch())
        config = image_config(program)
        _tell(f"{program}: archive")
        ociarchive.write(folder.parent / f"{version()}-{arch}.oci.tar", root, config, f"{program}:{version()}", arch)
        shutil.rmtree(folder / "rootfs", ignore_errors=True)
        root.rename(folder / "rootfs")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return folder


def _tell(step: str) -> None:
    """Progress on standard error; standard output names the folders that were made."""
    print(step, file=sys.stderr, flush=True)


def image_config(program: str) -> dict[str, Any]:
    """`config` of the OCI image: no shell, no environment but what keeps Python from writing."""
    return {
        "Entrypoint": ["/usr/bin/sublet", program],
        "Env": ["PATH=/usr/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
        "User": f"{USER}:{USER}",
        "WorkingDir": "/",
        "Labels": {
            "org.opencontainers.image.title": f"sublet-{program}",
            "org.opencontainers.image.version": version(),
            "org.opencontainers.image.licenses": "Apache-2.0",
        },
    }


def version() -> str:
    """Of pyproject.toml."""
    told: str = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["version"]
    return told


def epoch() -> int:
    """Seconds since 1970 of every file's time."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def settle(root: Path, seconds: int) -> None:
    """Nobody but the owner may write, nothing is setuid, and no time says when it was made."""
    for path in sorted(root.rglob("*"), reverse=True):
        if not path.is_symlink():
            runs = path.is_dir() or bool(path.stat().st_mode & 0o111)
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    root.chmod(0o755)
    os.utime(root, (seconds, seconds))


def _own_files(root: Path, listed: list[str]) -> None:
    for name, text in _ACCOUNTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    _command(root, "sublet", _COMMAND)
    # Where the manifests mount something: a root that is read only cannot be given a folder then.
    for folder in ("proc", "sys", "dev", "tmp", "run/sublet", "var/run", "var/lib/sublet", "etc/sublet", "host"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    contents = root / "usr/share/sublet/contents.txt"
    contents.parent.mkdir(parents=True)
    contents.write_text("".join(f"{line}\n" for line in sorted(listed)))


def _command(root: Path, name: str, text: str) -> None:
    command = root / "usr/bin" / name
    command.write_text(text)
    command.chmod(0o755)


def _require_debian() -> None:
    release = Path("/etc/os-release")
    told = release.read_text() if release.exists() else ""
    if "VERSION_CODENAME=bookworm" not in told.splitlines():
        raise ImageFault(
            "images are made of Debian 12's packages, on Debian 12; elsewhere build deploy/images/Containerfile"
        )
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing or sys.version_info[:2] != (3, 11):
        raise ImageFault(f"missing: {', '.join(missing) or 'Python 3.11 to run this script, as Debian 12 has it'}")


def _program(name: str) -> str:
    if name not in PROGRAMS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PROGRAMS)}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Makes the root file systems of Sublet's images.")
    parser.add_argument("program", nargs="*", type=_program, help="which images (default: all three)")
    parser.add_argument("--arch", choices=tuple(debian.TRIPLETS), default="amd64", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("build/images"), help="image store (default: %(default)s)")
    parser.add_argument("--cache", type=Path, default=Path("build/cache"), help="downloads (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
