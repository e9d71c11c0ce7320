"""A container on the files of its own image: namespaces, root file system, mounts, then its user and capabilities.

Part of the entry program, which imports it by its place only for such a container. The image's files are never
changed: what the container writes to its root lies above them in a tmpfs (see overlayfs in the kernel's documentation)
that ends with its namespace and counts as the container's memory. The old root stays open while the new one is
furnished, so that a volume's source is named as the machine names it and its target as the container does: no link in
an image leads out of it. Source: runc libcontainer/rootfs_linux.go, containerd pkg/oci/spec.go (default mounts, masked
and read-only paths).
"""

# Every import is paid for at the start of each container:
# ruff: noqa: PTH101, PTH102, PTH103, PTH110, PTH112, PTH115, PTH116, PTH118, PTH120, PTH211
from __future__ import annotations

import ctypes
import os
import stat

import mount_namespace  # type: ignore[import-not-found]
import privileges  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedded.node.processes.entry import Room

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC, _CLONE_NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
_CLONE_PARENT, _SIGCHLD = 0x00008000, 17
_CLONE = {"x86_64": 56, "aarch64": 220}
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_SLAVE = 4096, 16384, 1 << 19
_GUARDED = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/ptmx": "pts/ptmx",
}
_MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list"),
    *("/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"),
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_NAMESPACES = ("ipc", "uts", "pid", "mnt")

_libc = ctypes.CDLL(None, use_errno=True)


def enter(room: Room, directory: str, door: int) -> None:
    """Returns in the process that is to become the command, in its root and directory. Raises OSError.

    In a PID namespace of its own that is another process, a child of this one's parent, who hears its id at the door.
    """
    if room["pid"]:
        _join(room["pid"])
        os.chdir(directory)
        return
    unshared = _CLONE_NEWUTS | _CLONE_NEWIPC | (0 if room["machine_pids"] else _CLONE_NEWPID)
    _check(_libc.unshare(unshared), "namespaces")
    if not room["machine_pids"]:
        _continue_as_first_process(door)
    _check(_libc.unshare(_CLONE_NEWNS), "mount namespace")
    mount_namespace.mount(None, "/", None, _MS_REC | _MS_SLAVE)
    name = room["hostname"].encode()
    _check(_libc.sethostname(name, len(name)), "sethostname")
    _furnish(room, directory)
    os.chdir(directory)


def settle(room: Room) -> None:
    """User and capabilities: the last step before the command. Raises OSError."""
    os.umask(0o022)
    for number in (0, 1, 2):
        mode = os.fstat(number).st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or os.isatty(number):
            os.fchown(number, room["user"], -1)  # so that it can be opened again, as /dev/stdout
    privileges.give_up_all_but(
        room["capabilities"], room["user"], room["group"], room["groups"], room["no_new_privileges"]
    )


def try_out(stage: str) -> None:
    """Run for whether it raises: may this user lay the root of an image here? `stage` is an empty directory."""
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWPID), "namespaces")
    mount_namespace.mount(None, "/", None, _MS_REC | _MS_SLAVE)
    _lay_root("/usr", stage)


def _continue_as_first_process(door: int) -> None:
    """A process enters its new PID namespace by its children only; the node stays the parent of what it started."""
    child = _libc.syscall(_CLONE[os.uname().machine], ctypes.c_ulong(_CLONE_PARENT | _SIGCHLD), None, None, None, None)
    _check(child, "clone")
    if child:
        os.write(door, str(child).encode())
        os._exit(0)


def _join(pid: int) -> None:
    """The namespaces of a running container: by a child, where PIDs are its own; we end as that child does."""
    differing = [n for n in _NAMESPACES if os.readlink(f"/proc/{pid}/ns/{n}") != os.readlink(f"/proc/self/ns/{n}")]
    descriptors = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in differing]
    for descriptor in descriptors:
        _check(_libc.setns(descriptor, 0), f"namespace of process {pid}")
        os.close(descriptor)
    if "pid" in differing:
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            os._exit(128 - code if code < 0 else code)


def _furnish(room: Room, directory: str) -> None:
    _lay_root(room["root"], room["stage"])
    machine = os.open("/", os.O_PATH | os.O_DIRECTORY)
    os.chdir(os.path.join(room["stage"], "root"))
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    os.fchdir(machine)
    _system_places(room)
    for target, source, read_only in sorted(room["mounts"], key=lambda each: len(each[0])):
        _place(source, target, read_only)
    _make_point(directory, True)  # which the image may lack
    os.fchdir(machine)
    mount_namespace.unmount(".")
    os.close(machine)
    os.chdir("/")
    if room["read_only"]:
        _make_read_only("/")


def _lay_root(image: str, stage: str) -> None:
    """The image's files below what this container writes. From inside its directory, whose path may hold a colon."""
    mount_namespace.mount("tmpfs", stage, "tmpfs", 0, "mode=700")
    for name in ("upper", "work", "root"):
        os.mkdir(os.path.join(stage, name))
    seen = os.stat(image)
    os.chmod(os.path.join(stage, "upper"), stat.S_IMODE(seen.st_mode))
    os.chown(os.path.join(stage, "upper"), seen.st_uid, seen.st_gid)
    os.chdir(image)
    layers = f"lowerdir=.,upperdir={stage}/upper,workdir={stage}/work"
    mount_namespace.mount("overlay", os.path.join(stage, "root"), "overlay", 0, layers)


def _system_places(room: Room) -> None:
    """/proc, /sys and /dev as every container has them; a privileged one has the machine's devices."""
    _mount_new("proc", "/proc", _GUARDED)
    _mount_new("sysfs", "/sys", _GUARDED | (0 if room["privileged"] else _MS_RDONLY))
    if room["privileged"]:
        _place("/dev", "/dev", False)
    else:
        _make_devices()
    _mount_new("tmpfs", "/dev/shm", _GUARDED, "mode=1777,size=65536k")
    if not room["privileged"]:
        for path in _MASKED:
            _mask(path)
        for path in _READ_ONLY:
            if os.path.exists(path):
                mount_namespace.mount(path, path, None, _MS_BIND | _MS_REC)
                _make_read_only(path)


def _make_devices() -> None:
    _mount_new("tmpfs", "/dev", _MS_NOSUID, "mode=755,size=65536k")
    for name in _DEVICES:
        _place(f"/dev/{name}", f"/dev/{name}", False)
    _mount_new("devpts", "/dev/pts", _MS_NOSUID | _MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,gid=5")
    for path, target in _LINKS.items():
        os.symlink(target, path)


def _mount_new(kind: str, target: str, flags: int, data: str | None = None) -> None:
    _make_point(target, True)
    mount_namespace.mount(kind, target, kind, flags, data)


def _mask(path: str) -> None:
    if os.path.isdir(path):
        mount_namespace.mount("tmpfs", path, "tmpfs", _GUARDED | _MS_RDONLY)
    elif os.path.exists(path):
        mount_namespace.mount("/dev/null", path, None, _MS_BIND)


def _place(source: str, target: str, read_only: bool) -> None:
    """`source` is a path of the machine, whose root is the present directory; empty for a fresh tmpfs."""
    if not source:
        _mount_new("tmpfs", target, _GUARDED, "mode=755")
        return
    source = source.lstrip("/") or "."
    _make_point(target, os.path.isdir(source))
    mount_namespace.mount(source, target, None, _MS_BIND | _MS_REC)
    if read_only:
        _make_read_only(target)


def _make_read_only(target: str) -> None:
    mount_namespace.mount(None, target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | mount_namespace.kept_flags(target))


def _make_point(target: str, directory: bool) -> None:
    """Links are followed as the container would, also one to what is not there yet (/var/run)."""
    place = os.path.realpath(target)
    if os.path.lexists(place):
        return
    os.makedirs(os.path.dirname(place), 0o755, exist_ok=True)
    if directory:
        os.mkdir(place, 0o755)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))


def _check(answer: int, what: str) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
