"""The counters of a cgroup, and their text.

Every number has as many digits as it can ever have: the files are overwritten in place, since readers keep them open,
and a file whose length never changes is never seen half.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from embedded.cgroups.knobs import number_of

_DIGITS = 19


class Account(msgspec.Struct):
    """What a cgroup and all below it have used (only ever growing), and hold now."""

    cpu_us: int = 0
    periods: int = 0
    throttled: int = 0
    throttled_us: int = 0
    memory_bytes: int = 0
    processes: int = 0
    high: int = 0
    maximum: int = 0
    oom: int = 0
    oom_kill: int = 0
    oom_group_kill: int = 0
    local_high: int = 0
    local_oom: int = 0
    local_oom_kill: int = 0

    def texts(self) -> dict[str, str]:
        """Content by file name."""
        return {
            "cpu.stat": _table(
                usage_usec=self.cpu_us,
                user_usec=self.cpu_us,
                system_usec=0,
                nr_periods=self.periods,
                nr_throttled=self.throttled,
                throttled_usec=self.throttled_us,
            ),
            "memory.current": _number(self.memory_bytes),
            "memory.stat": _table(
                anon=self.memory_bytes,
                file=0,
                inactive_anon=0,
                active_anon=self.memory_bytes,
                inactive_file=0,
                active_file=0,
                unevictable=0,
            ),
            "memory.events": _table(
                low=0,
                high=self.high,
                max=self.maximum,
                oom=self.oom,
                oom_kill=self.oom_kill,
                oom_group_kill=self.oom_group_kill,
            ),
            "memory.events.local": _table(
                low=0,
                high=self.local_high,
                max=self.local_oom,
                oom=self.local_oom,
                oom_kill=self.local_oom_kill,
                oom_group_kill=0,
            ),
            "pids.current": _number(self.processes),
        }

    @classmethod
    def continued(cls, cpu_stat: str, events: str) -> Account:
        """What an earlier simulation had counted; zeroes where its files do not tell."""
        with suppress(ValueError):
            return cls(
                cpu_us=number_of("usage_usec", cpu_stat),
                periods=number_of("nr_periods", cpu_stat),
                throttled=number_of("nr_throttled", cpu_stat),
                throttled_us=number_of("throttled_usec", cpu_stat),
                high=number_of("high", events),
                maximum=number_of("max", events),
                oom=number_of("oom", events),
                oom_kill=number_of("oom_kill", events),
            )
        return cls()


def _table(**numbers: int) -> str:
    return "".join(f"{name} {_number(number)}" for name, number in numbers.items())


def _number(number: int) -> str:
    return f"{number:0{_DIGITS}}\n"
