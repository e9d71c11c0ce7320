"""Which capabilities a container has: names to bits, and containerd's arithmetic of add and drop. Pure.

Source: containerd internal/cri/server/container_create.go (add and drop, ALL before single names) and
pkg/oci/spec.go (defaultUnixCaps), capability.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NAMES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
"""In the kernel's order: the place is the bit."""
DEFAULT = (
    *("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP"),
    *("NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"),
)
_ALL = "ALL"


def mask(names: Iterable[str]) -> int:
    """A bit for each name; one that the kernel does not know counts for nothing."""
    return sum(1 << NAMES.index(name) for name in set(names) if name in NAMES)


def granted(add: Sequence[str], drop: Sequence[str], *, privileged: bool = False) -> int:
    """A bit for each capability a container may have: the default ones, more and fewer."""
    if privileged:
        return mask(NAMES)
    added, dropped = _plain(add), _plain(drop)
    held = set(NAMES) if _ALL in added else set(DEFAULT)
    if _ALL in dropped:
        held = set()
    return mask((held | added) - dropped)


def _plain(names: Iterable[str]) -> set[str]:
    return {name.upper().removeprefix("CAP_") for name in names}
