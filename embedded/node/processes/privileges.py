"""What a process may do: groups, user, capabilities. Given up in runc's order; nothing given up comes back.

Part of the entry program, see rootspace. The bounding set is what root gets back at the execution of a program, and
what a file's own capabilities are limited to; an ordinary user executes with none, since nothing is inheritable or
ambient. Source: runc libcontainer/init_linux.go (finalizeNamespace) and capabilities/capabilities.go, capabilities(7).
"""

# Every import is paid for at the start of each container.
from __future__ import annotations

import ctypes
import os

_PR_SET_KEEPCAPS, _PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 8, 23, 24, 38, 47
_AMBIENT_CLEAR_ALL = 4
_VERSION_3 = 0x20080522
_WORD = 0xFFFFFFFF

_libc = ctypes.CDLL(None, use_errno=True)


def give_up_all_but(mask: int, user: int, group: int, groups: list[int], no_new_privileges: bool) -> None:
    """`mask` has a bit for each capability to keep; one that this process lacks is not missed. Raises OSError."""
    kept = mask & permitted()
    number = 0
    while (held := _libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0)) >= 0:
        if held and not kept >> number & 1:
            _control(_PR_CAPBSET_DROP, number)
        number += 1
    _control(_PR_SET_KEEPCAPS, 1)
    os.setgroups(groups)
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    _control(_PR_SET_KEEPCAPS, 0)
    _set(kept)
    _control(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    if no_new_privileges:
        _control(_PR_SET_NO_NEW_PRIVS, 1)


def permitted() -> int:
    """The capabilities of this process, a bit each."""
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(_header(), sets), "capget")
    return int(sets[1]) | int(sets[4]) << 32


def _set(mask: int) -> None:
    """Effective and permitted; nothing is inheritable."""
    low, high = mask & _WORD, mask >> 32
    _check(_libc.capset(_header(), (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)), "capset")


def _header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_VERSION_3, 0)


def _control(option: int, value: int) -> None:
    _check(_libc.prctl(option, value, 0, 0, 0), f"prctl {option} {value}")


def _check(answer: int, what: str) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
