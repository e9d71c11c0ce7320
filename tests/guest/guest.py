"""Real cgroup v2 on any machine: a QEMU guest with one of Debian's cloud kernels over this machine's own files.

The guest's / is a tmpfs over the host's / (virtiofs): working copy and virtual environment are there, nothing written
stays, and /out alone is shared. /dev/vda is a blank disk. One command runs in it; its exit code comes back in a file, for QEMU's says nothing.
By hand: `python tests/guest/guest.py [--kernel 7.3] [--cpu MODEL] [--memory MIB] [--disk MIB] [--counted] OUT COMMAND…`, with what COMMAND leaves in /out then in OUT.
"""

from __future__ import annotations

import argparse
import lzma
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
CACHE_VARIABLE = "SUBLET_GUEST_CACHE"
INSIDE_VARIABLE = "SUBLET_GUEST"
INSTALL = "apt-get install qemu-system-x86 busybox-static cpio"
VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
NO_EXIT_CODE = -1
# In the order of loading: each needs those before it.
MODULES = (
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "drivers/block/virtio_blk",
    "fs/fuse/fuse",
    "fs/fuse/virtiofs",
    "fs/overlayfs/overlay",
)


MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_META = "linux-image-cloud-amd64"
# The image and, where it is split, what holds its parts.
_PARTS = re.compile(r"Depends: (linux-(?:image|binary|modules)-\d\S*)")
_VMLINUZ = re.compile(r"boot/vmlinuz-[^/]+|modules/[^/]+/vmlinuz$")


class Kernel(NamedTuple):
    """One of Debian's cloud kernels: the suite that has it ("": this machine's), and the CPU that it is shown.

    QEMU 7.2 emulates cmpxchg16b so that 6.12 dies of a double fault while it starts: that kernel goes without.
    """

    name: str
    suite: str = ""
    cpu: str = "qemu64"


KERNELS = {
    each.name: each
    for each in (
        Kernel("6.1"),
        Kernel("6.12", "bookworm-backports", "qemu64,-cx16"),
        Kernel("7.3", "trixie-backports", "max"),
    )
}


class Size(NamedTuple):
    """Memory and blank disk, in MiB. The tests need little; what is measured needs room, and swap on the disk.

    `counted` is for what is measured, too: one CPU, and time is what it has done, a nanosecond an instruction, however
    long this machine took for it, and whoever else used it; while it idles, time passes as it does here.
    """

    memory_mib: int = 1024
    disk_mib: int = 64
    counted: bool = False


SMALL = Size()


class Unavailable(Exception):
    """No guest can run here; the text says why and what would change that."""


class Outcome(NamedTuple):
    """How the command ended (NO_EXIT_CODE: it did not), what it printed and what the guest's console showed."""

    exit_code: int
    printed: str
    console: str


class Guest(NamedTuple):
    """Programs and files a boot needs."""

    qemu: str
    virtiofsd: str
    kernel: Path
    initrd: Path
    cpu: str

    @classmethod
    def prepared(cls, folder: Path, kernel: Kernel) -> Guest:
        """What is missing in `folder` is fetched and built there. Raises Unavailable."""
        if os.geteuid() != 0 or platform.machine() != "x86_64":
            raise Unavailable("needs root on x86_64: virtiofsd shares the host's files")
        qemu, busybox, _ = (_program(name) for name in ("qemu-system-x86_64", "busybox", "cpio"))
        # What the kernel starts first finds no libraries.
        if b"ld-linux" in Path(busybox).read_bytes()[:4096]:
            raise Unavailable(f"needs a static busybox: {INSTALL}")
        virtiofsd = next((path for path in VIRTIOFSD if Path(path).exists()), None)
        if virtiofsd is None:
            raise Unavailable(f"needs virtiofsd: {INSTALL}")
        own = folder / kernel.name
        own.mkdir(exist_ok=True)
        unpacked = _kernel(own, kernel.suite)
        return cls(qemu, virtiofsd, unpacked / "vmlinuz", _initrd(unpacked, Path(busybox), own), kernel.cpu)

    def run(self, command: Sequence[str], out: Path, timeout_seconds: float, size: Size = SMALL) -> Outcome:
        """Boot, run `command` in the working copy, power off. `out` becomes /out. Raises Unavailable."""
        if re.search(r"\s", str(out)):
            raise Unavailable(f"{out} has blanks, which a kernel command line cannot hold: set TMPDIR")
        code, printed = out / "exit", out / "printed"
        for file in (code, printed):
            file.unlink(missing_ok=True)
        (out / "job.sh").write_text(_job(command))
        with (
            self._shared_root() as socket,
            (out / "console").open("wb") as console,
            tempfile.NamedTemporaryFile(prefix="sublet-guest-") as disk,
        ):
            disk.truncate(size.disk_mib << 20)
            arguments = [
                *self._arguments(socket, out, size),
                "-drive",
                f"file={disk.name},if=virtio,format=raw",
            ]
            machine = subprocess.Popen(
                [self.qemu, *arguments], stdin=subprocess.DEVNULL, stdout=console, stderr=console
            )
            try:
                machine.wait(timeout_seconds)
            except subprocess.TimeoutExpired:
                pass
            finally:
                machine.kill()
                machine.wait()
        return Outcome(
            int(code.read_text()) if code.exists() else NO_EXIT_CODE,
            printed.read_text(errors="replace") if printed.exists() else "",
            (out / "console").read_text(errors="replace"),
        )

    @contextmanager
    def _shared_root(self) -> Iterator[Path]:
        """virtiofsd over the host's /; the value is its socket."""
        with tempfile.TemporaryDirectory(prefix="sublet-guest-") as folder, (Path(folder) / "log").open("w+b") as log:
            socket = Path(folder) / "socket"
            options = ("source=/", "sandbox=chroot", "cache=always", "flock")
            arguments = [f"--socket-path={socket}", *(word for option in options for word in ("-o", option))]
            server = subprocess.Popen([self.virtiofsd, *arguments], stdout=log, stderr=log)
            try:
                # It says in no other way that it listens.
                for _ in range(500):
                    if socket.exists() or server.poll() is not None:
                        break
                    time.sleep(0.02)
                if not socket.exists():
                    log.seek(0)
                    raise Unavailable(f"virtiofsd does not start: {log.read().decode(errors='replace').strip()}")
                yield socket
            finally:
                server.kill()
                server.wait()

    def _arguments(self, socket: Path, out: Path, size: Size) -> list[str]:
        memory = f"memory-backend-memfd,id=memory,size={size.memory_mib}M,share=on"
        clock = ("-smp", "1", "-icount", "shift=0") if size.counted else ("-smp", "2")
        # One thread for both CPUs, which takes no longer here: with one for each a CPU once ran code that the other had
        # just patched (a static key of the scheduler) as it was before, and the kernel panicked ("Oops: int3").
        return [
            *("-accel", "tcg,thread=single", "-cpu", self.cpu, *clock, "-m", str(size.memory_mib)),
            *("-nodefaults", "-no-reboot", "-nographic", "-monitor", "none", "-serial", "stdio"),
            *("-object", memory, "-numa", "node,memdev=memory"),
            *("-chardev", f"socket,id=files,path={socket}", "-device", "vhost-user-fs-pci,chardev=files,tag=host"),
            *("-kernel", str(self.kernel), "-initrd", str(self.initrd)),
            *("-append", f"console=ttyS0 quiet panic=1 psi=1 mitigations=off out={out}"),
        ]


def cache_folder(temporary: Path) -> Path:
    """Where kernel and initrd are kept: $SUBLET_GUEST_CACHE, else `temporary`."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or temporary)
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"needs {name}: {INSTALL}")
    return found


def _kernel(folder: Path, suite: str) -> Path:
    """vmlinuz and the modules that a boot needs and the kernel has not built in, below `folder`."""
    unpacked = folder / "kernel"
    if unpacked.exists():
        return unpacked
    with tempfile.TemporaryDirectory(dir=folder, prefix="kernel-") as temporary:
        part = Path(temporary) / "kernel"
        (part / "modules").mkdir(parents=True)
        for package in _packages(Path(temporary), suite):
            _unpack(package, part)
        if not (part / "vmlinuz").exists():
            raise Unavailable(f"no vmlinuz in Debian's {_META} of {suite or 'this machine'}")
        part.rename(unpacked)
    return unpacked


def _unpack(package: Path, into: Path) -> None:
    wanted = {f"kernel/{module}.ko": f"modules/{Path(module).name}.ko" for module in MODULES}
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as files,
        tarfile.open(fileobj=files.stdout, mode="r|") as archive,
    ):
        for member in archive:
            path = member.name.partition("lib/modules/")[2].partition("/")[2]
            place = "vmlinuz" if _VMLINUZ.search(member.name) else wanted.get(path.removesuffix(".xz"))
            content = archive.extractfile(member) if place and member.isfile() else None
            if place and content:
                data = content.read()
                (into / place).write_bytes(lzma.decompress(data) if path.endswith(".xz") else data)


def _packages(folder: Path, suite: str) -> list[Path]:
    """Debian's newest cloud kernel in all its parts, downloaded without installing anything."""
    lists = _lists(folder, suite) if suite else []
    found = set[str]()
    asked = [_META]
    while asked:
        depends = _output(["apt-cache", *lists, "depends", asked.pop()], folder).decode()
        new = set(_PARTS.findall(depends)) - found
        found |= new
        asked += new
    if not found:
        raise Unavailable(f"needs Debian's package lists with {_META}: apt-get update")
    _output(["apt-get", *lists, "download", "-qq", *sorted(found)], folder)
    return sorted(folder.glob("linux-*.deb"))


def _lists(folder: Path, suite: str) -> list[str]:
    """apt's options for the lists of this suite alone, fetched into `folder`: the machine's own stay as they are."""
    (folder / "sources").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {suite} main\n")
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    settings = {
        "Dir::Etc::sourcelist": str(folder / "sources"),
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": str(folder / "lists"),
        "Dir::Cache": str(folder / "cache"),
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _output(["apt-get", *options, "update", "-qq"], folder)
    return options


def _output(command: list[str], folder: Path, given: bytes = b"") -> bytes:
    try:
        return subprocess.run(command, cwd=folder, input=given, check=True, capture_output=True, timeout=120).stdout
    except (OSError, subprocess.SubprocessError) as error:
        told = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").strip()
        raise Unavailable(f"needs a Debian kernel package, and {shlex.join(command)} failed: {told}") from error


def _initrd(unpacked: Path, busybox: Path, folder: Path) -> Path:
    """busybox, the modules in order, and init.sh."""
    initrd = folder / "initrd"
    with tempfile.TemporaryDirectory(dir=folder, prefix="initrd-") as temporary:
        tree = Path(temporary) / "tree"
        for name in ("bin", "proc", "sys", "dev", "modules"):
            (tree / name).mkdir(parents=True)
        shutil.copy(busybox, tree / "bin/busybox")
        shutil.copy(HERE / "init.sh", tree / "init")
        (tree / "init").chmod(0o755)
        loaded = [name for module in MODULES if (unpacked / "modules" / (name := f"{Path(module).name}.ko")).exists()]
        for name in loaded:
            shutil.copy(unpacked / "modules" / name, tree / "modules")
        (tree / "modules/order").write_text("".join(f"{name}\n" for name in loaded))
        names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*"))).encode()
        packed = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=names, check=True, capture_output=True
        )
        part = Path(temporary) / "initrd"
        part.write_bytes(packed.stdout)
        part.rename(initrd)
    return initrd


def _job(command: Sequence[str]) -> str:
    """Runs as the guest's first process: no environment is set, and when it ends the kernel panics."""
    environment: Mapping[str, str] = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        INSIDE_VARIABLE: "1",
    }
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    return f"""{exports}cd {shlex.quote(str(REPOSITORY))}
{shlex.join(command)} >/out/printed 2>&1 </dev/null
echo $? >/out/exit.part && mv /out/exit.part /out/exit
sync
echo o >/proc/sysrq-trigger
sleep 10
"""


def main() -> int:
    """The command's exit code. Raises Unavailable."""
    parser = argparse.ArgumentParser(
        prog="guest.py", description="Run COMMAND in a guest; what it leaves in /out is in OUT."
    )
    parser.add_argument("--kernel", choices=KERNELS, default="6.1")
    parser.add_argument("--memory", type=int, default=SMALL.memory_mib, help="MiB (default: %(default)s)")
    parser.add_argument("--disk", type=int, default=SMALL.disk_mib, help="MiB of /dev/vda (default: %(default)s)")
    parser.add_argument("--cpu", help="QEMU's model of it (default: by the kernel)")
    parser.add_argument(
        "--counted", action="store_true", help="one CPU whose time is its instructions, for what is measured"
    )
    parser.add_argument("--seconds", type=float, default=600, help="bound (default: %(default)s)")
    parser.add_argument("out", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sublet-guest-") as temporary:
        guest = Guest.prepared(cache_folder(Path(temporary)), KERNELS[given.kernel])
        if given.cpu:
            guest = guest._replace(cpu=given.cpu)
        outcome = guest.run(given.command, out, given.seconds, Size(given.memory, given.disk, given.counted))
    print(outcome.printed or outcome.console, end="")
    return outcome.exit_code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as reason:
        sys.exit(f"error: {reason}")
