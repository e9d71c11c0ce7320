"""deploy/images: how an image is put together (fast), and what is in one that was built here (slow)."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "deploy" / "images"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LARGEST_AGENT_BYTES = 150_000_000
HEAVY = ("numpy", "cryptography", "matplotlib", "psutil")
"""None of them is the agent's."""


def loaded() -> ModuleType:
    """The script as a module, with its parts as attributes."""
    spec = importlib.util.spec_from_file_location("assemble", IMAGES / "assemble.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ASSEMBLE = loaded()


LOCKED = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def locked(name: str) -> dict[str, str]:
    """The version of each package in requirements/NAME.txt, all of which has the form name, version, hashes."""
    text = (IMAGES / "requirements" / f"{name}.txt").read_text().removeprefix("# Written by deploy/images/lock.py.\n")
    assert text and not LOCKED.sub("", text)
    return {found["name"]: found["version"] for found in LOCKED.finditer(text)}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


@pytest.mark.parametrize("program", ASSEMBLE.PROGRAMS)
def test_the_versions_in_the_images_are_ones_we_allow(program: str) -> None:
    """Each requirement of pyproject.toml is pinned with its hashes, at its lower bound or above."""
    pinned = locked(program)
    for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"][program]):
        name, _, least = requirement.partition(">=")
        assert numbers(pinned[name.lower()]) >= numbers(least), requirement


def test_what_builds_our_wheel_is_pinned() -> None:
    """The build back end runs with our source in its hands."""
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert [requirement.partition(">=")[0] for requirement in built] == list(locked("build"))


def test_programs_hold_the_same_versions() -> None:
    """A package in two images is one package to whoever looks for a vulnerable one."""
    versions: dict[str, set[str]] = {}
    for program in ASSEMBLE.PROGRAMS:
        for name, version in locked(program).items():
            versions.setdefault(name, set()).add(version)
    assert {name for name, known in versions.items() if len(known) > 1} == set()


def test_the_base_image_is_named_by_digest() -> None:
    """A tag may become another image at any time."""
    bases = re.findall(r"(?m)^FROM (\S+)", (IMAGES / "Containerfile").read_text())
    named = {base for base in bases if base not in ("source", "scratch")}
    assert named and all(re.search(r"@sha256:[0-9a-f]{64}$", base) for base in named)


PLACES = {
    "./lib/x86_64-linux-gnu/libc.so.6": "usr/lib/x86_64-linux-gnu/libc.so.6",
    "./lib64/ld-linux-x86-64.so.2": "usr/lib64/ld-linux-x86-64.so.2",
    "./usr/bin/python3.11": "usr/bin/python3.11",
    "./bin/sh": None,
    "./usr/bin/openssl": None,
    "./usr/sbin/update-ca-certificates": None,
    "./usr/lib/x86_64-linux-gnu/gconv/EUC-KR.so": None,
    "./usr/lib/python3.11/json/decoder.py": "usr/lib/python3.11/json/decoder.py",
    "./usr/lib/python3.11/distutils/core.py": None,
    "./usr/lib/python3.11/lib-dynload/_curses.cpython-311-x86_64-linux-gnu.so": None,
    "./usr/share/doc/libc6/copyright": "usr/share/doc/libc6/copyright",
    "./usr/share/man/man1/python.1.gz": None,
}
"""Where a package's file goes; None leaves it out."""


@pytest.mark.parametrize(("name", "place"), PLACES.items(), ids=PLACES)
def test_of_a_package_goes_in_what_runs(name: str, place: str | None) -> None:
    """Merged /usr; programs beside the interpreter, manuals and what has no library here stay out."""
    merged = ASSEMBLE.debian._merged(name)
    assert (merged if ASSEMBLE.debian._wanted(merged, "amd64") else None) == place


def small(root: Path) -> Path:
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/program").write_text("#!/usr/bin/python3\n")
    (root / "usr/bin/program").chmod(0o6777)
    (root / "usr/notes").write_text("text")
    (root / "usr/notes").chmod(0o666)
    (root / "bin").symlink_to("usr/bin")
    return root


def test_what_was_compiled_ahead_is_what_runs(tmp_path: Path) -> None:
    """Whatever time a file bears, and where nothing may be written: no start compiles a module again."""
    place = tmp_path / "usr/lib"
    place.mkdir(parents=True)
    (place / "compiled.py").write_text("VALUE = 'ahead'\n")
    ASSEMBLE.pythonpackages.compile_ahead(place, tmp_path)
    ASSEMBLE.settle(tmp_path, 0)
    # Bytecode that is not looked at would show now.
    (place / "compiled.py").write_text("VALUE = 'again'\n")
    code = f"import sys; sys.path.insert(0, {str(place)!r}); import compiled; print(compiled.VALUE)"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "ahead\n", done.stderr
    (cached,) = (place / "__pycache__").iterdir()
    assert int.from_bytes(cached.read_bytes()[4:8], "little") == 0b01, "PEP 552: by hash, unchecked"


def test_a_settled_tree_has_no_owner_but_one_and_no_time(tmp_path: Path) -> None:
    """Nothing is setuid, nobody else may write, every file has the time it was told."""
    root = small(tmp_path / "root")
    ASSEMBLE.settle(root, 1_700_000_000)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in root.rglob("*") if not path.is_symlink()}
    assert modes == {"usr": 0o755, "bin": 0o755, "program": 0o755, "notes": 0o644}
    assert {int(path.lstat().st_mtime) for path in root.rglob("*")} == {1_700_000_000}


def test_an_archive_is_what_the_specification_says(tmp_path: Path) -> None:
    """index → manifest → config and layer, each found by the digest that names it; the same tree gives the same bytes."""
    digests = set()
    for name in ("once", "again"):
        root = small(tmp_path / name)
        ASSEMBLE.settle(root, 0)
        target = tmp_path / f"{name}.tar"
        ASSEMBLE.ociarchive.write(target, root, {"User": "65532:65532"}, "agent:1.2.3", "arm64")
        digests.add(hashlib.sha256(target.read_bytes()).hexdigest())
    assert len(digests) == 1
    with tarfile.open(target) as archive:
        blobs = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (told,) = json.loads(blobs["index.json"])["manifests"]
    assert told["annotations"]["io.containerd.image.name"] == "docker.io/library/sublet-agent:1.2.3"
    manifest = json.loads(_blob(blobs, told))
    config, layer = json.loads(_blob(blobs, manifest["config"])), _blob(blobs, manifest["layers"][0])
    assert (config["architecture"], config["config"]) == ("arm64", {"User": "65532:65532"})
    assert layer[:2] == b"\x1f\x8b" and len(config["rootfs"]["diff_ids"]) == 1


def _blob(blobs: dict[str, bytes], told: dict[str, Any]) -> bytes:
    content = blobs[f"blobs/sha256/{told['digest'].removeprefix('sha256:')}"]
    assert (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}") == (told["size"], told["digest"])
    return content


def test_the_containerfile_runs_the_same_script() -> None:
    """A target for each program, made by assemble.py; the last stage is empty but for what it copies."""
    text = (IMAGES / "Containerfile").read_text()
    for program in ASSEMBLE.PROGRAMS:
        config = ASSEMBLE.image_config(program)
        assert f"FROM scratch AS {program}\nCOPY --from=made-{program} /rootfs /\n" in text
        assert f"assemble.py {program} --arch" in text
        assert f"ENTRYPOINT {json.dumps(config['Entrypoint'])}" in text
        assert f"ENV {' '.join(config['Env'])}" in text and f"USER {config['User']}" in text


def debian_12() -> bool:
    release = Path("/etc/os-release")
    return release.exists() and "VERSION_CODENAME=bookworm" in release.read_text() and sys.version_info[:2] == (3, 11)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our own files as they are at this moment, for all images of this run."""
    copy = tmp_path_factory.mktemp("source") / "sublet"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*ASSEMBLE.pythonpackages._NOT_OURS))
    return copy


def built(out: Path, source: Path) -> Path:
    """The agent's image for this machine, of Debian's packages and PyPI's; what is downloaded is kept below build/."""
    folder: Path = ASSEMBLE.assemble("agent", "amd64", out, ROOT / "build" / "cache", source)
    return folder


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    if not debian_12() or platform.machine() != "x86_64":
        pytest.skip("needs Debian 12 on x86-64 with Python 3.11, as images are made there")
    return built(tmp_path_factory.mktemp("images"), source)


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestAgentImage:
    """What is in it, and what is not."""

    def test_it_is_small(self, image: Path) -> None:
        """Below 150 MB unpacked."""
        files = [path for path in (image / "rootfs").rglob("*") if path.is_file() and not path.is_symlink()]
        assert sum(path.stat().st_size for path in files) < LARGEST_AGENT_BYTES

    def test_it_lies_as_the_image_store_wants_it(self, image: Path) -> None:
        """REPOSITORY/TAG/{rootfs,config.json}, and nothing half made beside it."""
        assert (image.parent.name, image.name) == ("sublet-agent", PROJECT["version"])
        assert json.loads((image / "config.json").read_text())["User"] == "65532:65532"
        assert not list(image.parent.glob(".making-*"))

    def test_it_holds_no_tools(self, image: Path) -> None:
        """The interpreter and our command are the only programs: no shell, no package manager."""
        root = image / "rootfs"
        assert sorted(path.name for path in (root / "usr/bin").iterdir()) == [
            "python3",
            "python3.11",
            "sublet",
            "sublet-probe",
        ]
        assert not list((root / "usr/sbin").iterdir())
        installed = {path.name.split("-")[0].lower() for path in root.rglob("*.dist-info")}
        assert "sublet" in installed and not installed & {*HEAVY, "pip", "setuptools", "wheel"}

    def test_nobody_but_root_may_write_and_nothing_is_setuid(self, image: Path) -> None:
        """Whoever gets in finds nothing to change."""
        for path in (image / "rootfs").rglob("*"):
            mode = path.lstat().st_mode
            assert stat.S_ISLNK(mode) or not mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH), path

    def test_it_says_what_is_in_it(self, image: Path) -> None:
        """Every package with its version, for whoever looks for a vulnerable one."""
        lines = (image / "rootfs/usr/share/sublet/contents.txt").read_text().splitlines()
        assert lines == sorted(lines) and all(len(line.split()) == 3 for line in lines)
        assert {f"debian {name}" for name in ASSEMBLE.debian.PACKAGES} <= {" ".join(line.split()[:2]) for line in lines}
        assert f"python sublet {PROJECT['version']}" in lines

    @pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
    def test_the_agent_starts_in_it(self, image: Path) -> None:
        """With nothing of this machine's: the command, all that it loads, and every module that is compiled."""
        root = str(image / "rootfs")
        said = subprocess.run(["chroot", root, "/usr/bin/sublet", "agent", "--version"], capture_output=True, text=True)
        assert (said.stdout.strip(), said.stderr) == (f"sublet-agent {PROJECT['version']}", "")
        code = "import importlib, pathlib, agent.run.wiring, agent.run.offline\n" + (
            "for path in pathlib.Path('/usr/lib/python3.11/lib-dynload').glob('*.so'):\n"
            "    importlib.import_module(path.name.partition('.')[0])\n"
        )
        subprocess.run(["chroot", root, "/usr/bin/python3", "-I", "-c", code], check=True)
        probe = [*("chroot", root, "/usr/bin/sublet-probe"), "/run/sublet/agent.probe", "healthz"]
        nobody = subprocess.run(probe, capture_output=True, text=True)
        told = "the agent does not answer: No such file or directory\n"
        assert (nobody.returncode, nobody.stdout, nobody.stderr) == (1, told, "")
        for name in HEAVY:
            command = ["chroot", root, "/usr/bin/python3", "-I", "-c", f"import {name}"]
            assert b"ModuleNotFoundError" in subprocess.run(command, capture_output=True).stderr

    def test_the_same_again_gives_the_same_bytes(self, image: Path, source: Path, tmp_path: Path) -> None:
        """Also the modules that were compiled ahead."""
        again = built(tmp_path, source)
        name = f"{PROJECT['version']}-amd64.oci.tar"
        first, second = ((folder.parent / name).read_bytes() for folder in (image, again))
        assert hashlib.sha256(first).digest() == hashlib.sha256(second).digest()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_wheel_with_another_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is unpacked."""
    text = (IMAGES / "requirements" / "build.txt").read_text()
    (tmp_path / "build.txt").write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'0' * 64}", text))
    monkeypatch.setattr(ASSEMBLE.pythonpackages, "REQUIREMENTS", tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        ASSEMBLE.pythonpackages._own_wheel(ROOT, tmp_path / "scratch", tmp_path / "cache")
    assert not list((tmp_path / "scratch").glob("**/*.py"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", ASSEMBLE.PROGRAMS)
def test_no_dependency_blocks_arm64(program: str, tmp_path: Path) -> None:
    """Each, and what it depends on, has a wheel for aarch64 with Debian 12's glibc, of the version and hash of the images."""
    options = ["--dry-run", "--ignore-installed", "--quiet", "--no-deps", "--target", str(tmp_path)]
    wheels = [*ASSEMBLE.pythonpackages.wheels_of("arm64"), *ASSEMBLE.pythonpackages._locked(program)]
    command = [sys.executable, "-m", "pip", "install", *options, *wheels]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
