"""Kernel text to numbers. Each parser takes the file's bytes and raises ValueError saying what is wrong.

Every field must be complete (digits up to its line's end), so that text cut short is never a smaller number; counters
must fit 63 bits. Speed counts here: a node has thousands of these files, and most are read each second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.core.observe.observation import CpuThrottling, DiskBytes, MemoryEvents, Stall

_LARGEST = (1 << 63) - 1
_SHOWN_BYTES = 60
_NO_LIMIT_BYTES = 1 << 60
_DENTRY_BYTES = 1408
"""Of Linux 6.18 a dentry (192) with a name of 255 characters beside it (512), with the inode of a socket (832), or with
that of an open file of ext4 (1,380 bytes each measured, the rest of slabs included)."""
_INDEX_NODE_BYTES = 585
"""struct xa_node (576), with its part of what is left over of its slab."""
_MOST_NODES = 9
"""By which the kernel finds one page of a file that is as large as it may be: 2^51 pages, 64 a node."""
_PAGE_BYTES = 4096
_NEVER_THROTTLED = CpuThrottling(0, 0)
_NO_STALL = Stall()

_AVERAGES = rb" avg10=(\d{1,3}\.\d\d) avg60=(\d{1,3}\.\d\d) avg300=(\d{1,3}\.\d\d) total=(\d{1,19})\n"
_PRESSURE = re.compile(rb"some" + _AVERAGES + rb"(?:full" + _AVERAGES + rb")?")
_V2_USAGE = re.compile(rb"usage_usec (\d{1,19})\n")
_V1_THROTTLING = re.compile(rb"nr_periods (\d{1,19})\nnr_throttled (\d{1,19})\nthrottled_time (\d{1,19})\n")
_V2_THROTTLING = re.compile(rb"nr_periods (\d{1,19})\nnr_throttled (\d{1,19})\nthrottled_usec (\d{1,19})\n")
# The kernel prints its LRU lists one after the other, in the order of its enum lru_list.
_LRU = (b"inactive_anon", b"active_anon", b"inactive_file", b"active_file", b"unevictable")
_V1_MEMORY = re.compile(b"".join(rb"total_" + name + rb" (\d{1,19})\n" for name in _LRU))
_V2_MEMORY = re.compile(b"".join(name + rb" (\d{1,19})\n" for name in _LRU))
# Other counts: files in memory (tmpfs), pages of all files with these, and those of swap among them.
_V1_COUNTS = (b"total_shmem ", b"total_cache ", b"total_swapcached ")
_V2_COUNTS = (b"shmem ", b"file ", b"swapcached ")
_REFAULTS = re.compile(rb"^(total_)?workingset_refault(?:_anon|_file)? (\d{1,19})\n", re.MULTILINE)
_DROPPABLE_SLAB = re.compile(rb"\nslab_reclaimable (\d{1,19})\n")
_NEVER = b" avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
_CALM = b"some" + _NEVER + b"full" + _NEVER
_IO_STAT = re.compile(rb"\d+:\d+ (?:\S+ )*?rbytes=(\d{1,19}) wbytes=(\d{1,19})(?: \S+)*")
_NO_IO = re.compile(rb"\d+:\d+ ?")
_BLKIO = re.compile(rb"\d+:\d+ (Read|Write|Sync|Async|Discard|Total) (\d{1,19})")
_BLKIO_TOTAL = re.compile(rb"Total \d+")
_FILE_LISTS, _FILES = frozenset((b"Active(file)", b"Inactive(file)", b"Shmem")), (b"FilePages", b"Cached")
_MEMINFO_LINE = re.compile(rb"^([A-Za-z()]+): +(\d{1,15}) kB\n", re.MULTILINE)
_CPU_RANGE = re.compile(rb"(\d{1,4})(?:-(\d{1,4}))?")

Memory = tuple[int, int]
"""Bytes that cannot be dropped, bytes of page cache."""


def counter(text: bytes) -> int:
    """A file with one number that is never negative, such as cpuacct.usage or memory.current."""
    digits = text.strip()
    if digits.isdigit() and (value := int(digits)) <= _LARGEST:
        return value
    raise ValueError(f"{_shown(text)} is not a counter")


def whole_number(text: bytes) -> int:
    """A file with one decimal number, such as cpu.shares; -1 is allowed."""
    stripped = text.strip()
    digits = stripped[1:] if stripped[:1] == b"-" else stripped
    if digits.isdigit() and (value := int(digits)) <= _LARGEST:
        return value if digits is stripped else -value
    raise ValueError(f"{_shown(text)} is not a whole number")


def whole_percent(text: bytes) -> int:
    """Such as cpu.uclamp.max: `max`, which is 100, or up to 100.00, cut to whole percents."""
    stripped = text.strip()
    if stripped == b"max":
        return 100
    whole, _, fraction = stripped.partition(b".")
    if whole.isdigit() and len(whole) <= 3 and int(whole) <= 100 and (fraction.isdigit() or not fraction):
        return int(whole)
    raise ValueError(f"{_shown(text)} is not a percentage")


def v1_cpu_time(text: bytes) -> tuple[int, None]:
    """cpuacct.usage: ns; the throttling counters stand in another file."""
    return counter(text), None


def v2_cpu_time(text: bytes) -> tuple[int, CpuThrottling | None]:
    """cpu.stat: CPU time in ns, and throttling (None where the cpu controller is off)."""
    cpu_ns = int(_match(_V2_USAGE, text, 0)[1]) * 1000
    start = text.find(b"\nnr_periods ")
    if start < 0:
        return _bounded(cpu_ns, text), None
    return _bounded(cpu_ns, text), _throttled(_match(_V2_THROTTLING, text, start + 1), text, 1)


def v1_throttling(text: bytes) -> CpuThrottling:
    """cpu.stat; its time is in ns."""
    if text.startswith(b"nr_periods 0\n"):
        return _NEVER_THROTTLED
    return _throttled(_match(_V1_THROTTLING, text, 0), text, 1000)


def v1_memory(text: bytes) -> Memory:
    """memory.stat with its descendants: usage without page cache, and the cache.

    Source: Koordinator pkg/koordlet/util/system/cgroup.go.
    """
    return _memory(_match(_V1_MEMORY, text, text.find(b"total_inactive_anon ")), text, _V1_COUNTS)


def v2_memory(text: bytes) -> Memory:
    """memory.stat, which counts descendants in every field: the same two figures."""
    return _memory(_match(_V2_MEMORY, text, text.find(b"inactive_anon ")), text, _V2_COUNTS)


def v2_anonymous(text: bytes) -> tuple[int, int, int]:
    """memory.stat: bytes that cannot be dropped, those of them that are inactive and anonymous, and pages of anonymous
    memory that were read back (since Linux 5.9)."""
    found = _match(_V2_MEMORY, text, text.find(b"inactive_anon "))
    return _memory(found, text, _V2_COUNTS)[0], int(found[1]), _field(text, b"workingset_refault_anon ")


def kernel_memory(text: bytes, charged: int, anonymous: int, cache: int) -> int:
    """What is charged beyond both, bytes, without the kernel's caches of files, which it can drop.

    Those stand in memory.stat of v2; v1 does not tell them. Never raises.
    """
    return max(charged - anonymous - cache - kernel_caches(text), 0)


def kernel_caches(text: bytes) -> int:
    """Of memory.stat (v2) what that leaves out; 0 on v1. Never raises."""
    found = _DROPPABLE_SLAB.search(text)
    return int(found[1]) if found else 0


def v1_oom_kills(text: bytes) -> int:
    """memory.oom_control; 0 on kernels before 4.13, which do not count them."""
    _field(text, b"under_oom ")
    return _field(text, b"oom_kill ") if b"\noom_kill " in text else 0


def v2_memory_events(text: bytes) -> MemoryEvents:
    """memory.events; oom_kill is 0 on kernels before 4.13, which do not count it."""
    kills = _field(text, b"oom_kill ") if b"oom_kill " in text else 0
    return MemoryEvents(_field(text, b"high "), _field(text, b"max "), _field(text, b"oom "), kills)


def stalls(text: bytes) -> tuple[Stall, Stall | None]:
    """(some, full) of a pressure file; full is None for the CPU on kernels before 5.13."""
    if text == _CALM:
        return _NO_STALL, _NO_STALL
    found = _PRESSURE.fullmatch(text)
    if found is None:
        raise ValueError(f"{_shown(text)} is not a pressure file")
    fields = found.groups()
    return _stall(text, fields[:4]), _stall(text, fields[4:]) if fields[4] is not None else None


def v2_disk(text: bytes) -> DiskBytes:
    """io.stat: all devices together; no line means no traffic yet."""
    read = written = 0
    for line in _lines(text):
        found = _IO_STAT.fullmatch(line)
        # A device without traffic of its own is shown by its bare number on some kernels.
        if found is None and not _NO_IO.fullmatch(line):
            raise ValueError(f"{_shown(line)} is not a line of io.stat")
        read += int(found[1]) if found else 0
        written += int(found[2]) if found else 0
    return DiskBytes(_bounded(read, text), _bounded(written, text))


def memory_limit(text: bytes) -> int:
    """Bytes; 0 where there is no limit: `max` on v2, on v1 the largest number of whole pages (2^63 - 4096)."""
    if text.strip() == b"max":
        return 0
    limit = counter(text)
    return 0 if limit >= _NO_LIMIT_BYTES else limit


def refaults(text: bytes) -> int | None:
    """Pages that were read back after they had been taken, of memory.stat (v1: with its descendants) or /proc/vmstat;
    None on kernels that do not count them."""
    found = _REFAULTS.findall(text)
    whole = [number for total, number in found if total] or [number for _, number in found]
    return _bounded(sum(map(int, whole)), text) if whole else None


def vmstat(text: bytes) -> tuple[int, int]:
    """/proc/vmstat: pages read back, and pages that the node's own reclaim took (that of cgroups is not in it)."""
    refaulted = refaults(text)
    if refaulted is None:
        raise ValueError(f"workingset_refault missing in {_shown(text)}")
    return refaulted, _bounded(_field(text, b"pgsteal_kswapd ") + _field(text, b"pgsteal_direct "), text)


def v2_limit_hits(text: bytes) -> int:
    """memory.events.local: how often a charge met this very cgroup's memory.high or memory.max."""
    return _field(text, b"high ") + _field(text, b"max ")


def pids_limit(text: bytes) -> int:
    """pids.max; 0 where there is no limit, which is `max`. A limit of 0 lets nobody fork, and counts as 1."""
    return 0 if text.strip() == b"max" else max(counter(text), 1)


def task_count(text: bytes) -> int:
    """Processes and threads of the whole machine: what follows the slash in /proc/loadavg."""
    fields = text.split()
    _, slash, number = fields[3].partition(b"/") if len(fields) == 5 else (b"", b"", b"")
    if not slash:
        raise ValueError(f"{_shown(text)} is not /proc/loadavg")
    return counter(number)


def v1_disk(text: bytes) -> DiskBytes:
    """blkio.throttle.io_service_bytes(_recursive): `major:minor Operation bytes` lines, and a total."""
    sums = {b"Read": 0, b"Write": 0}
    *devices, total = _lines(text) or [b""]
    for line in devices:
        found = _BLKIO.fullmatch(line)
        if found is None:
            raise ValueError(f"{_shown(line)} is not a line of blkio")
        if found[1] in sums:
            sums[found[1]] += int(found[2])
    if not _BLKIO_TOTAL.fullmatch(total):
        raise ValueError(f"{_shown(total)} is not the last line of blkio")
    return DiskBytes(_bounded(sums[b"Read"], text), _bounded(sums[b"Write"], text))


def busy_ticks(text: bytes) -> int:
    """Clock ticks all CPUs were busy, of /proc/stat's first line."""
    whole, end, _ = text.partition(b"\n")
    name, _, line = whole.partition(b" ")
    if name != b"cpu" or not end:
        raise ValueError(f"{_shown(text)} is not the cpu line of /proc/stat")
    return busy_of_line(line)


def busy_of_line(line: bytes) -> int:
    """user + nice + system + irq + softirq + steal of what follows the name in a cpu line of /proc/stat, clock ticks.

    Idle and iowait are not counted. Steal is, unlike in Koordinator (pkg/koordlet/util/stat.go): what the hypervisor
    gave to others is not idle (docs/adr/0007).
    """
    numbers = [whole_number(field) for field in line.split()[:8]]
    if len(numbers) < 7 or min(numbers) < 0:
        raise ValueError(f"{_shown(line)} is not a cpu line of /proc/stat: too few numbers, or one below 0")
    user, nice, system, _idle, _iowait, irq, softirq, *steal = numbers
    return _bounded(user + nice + system + irq + softirq + sum(steal), line)


def meminfo(text: bytes) -> tuple[int, int, int]:
    """(total, available, free) of /proc/meminfo in bytes; what is given up (MADV_FREE) and may be in use again, which
    the kernel counts as available, is not."""
    total, available, free = (_kibibytes(text, key) for key in (b"MemTotal:", b"MemAvailable:", b"MemFree:"))
    if max(available, free) > total:
        raise ValueError(f"more memory available or free than there is in {_shown(text)}")
    kibibytes = {name: int(number) for name, number in _MEMINFO_LINE.findall(text)}
    return total, max(available - given_up(kibibytes) * 1024, 0), free


def given_up(kibibytes: Mapping[bytes, int]) -> int:
    """KiB of anonymous memory among the file pages of a meminfo, the machine's or a NUMA node's; 0 where a field is
    missing."""
    if not kibibytes.keys() >= _FILE_LISTS or kibibytes.keys().isdisjoint(_FILES):
        return 0
    files = kibibytes.get(b"FilePages", 0) - kibibytes.get(b"SwapCached", 0)
    if b"FilePages" not in kibibytes:
        files = kibibytes[b"Cached"] + kibibytes.get(b"Buffers", 0)
    cache = kibibytes[b"Active(file)"] + kibibytes[b"Inactive(file)"]
    return _given_up(cache, files - kibibytes[b"Shmem"])


def dentries_in_use(text: bytes) -> int:
    """/proc/sys/fs/dentry-state: names of files that the kernel keeps and cannot drop."""
    kept, unused, _ = _dentries(text)
    return max(kept - unused, 0)


def dentries_of_files(text: bytes) -> int:
    """The same: names of files that there are, in use or not; others tell that there is none (since Linux 5.0)."""
    kept, _, negative = _dentries(text)
    return max(kept - negative, 0)


def inodes_in_use(text: bytes) -> int:
    """/proc/sys/fs/inode-state: files that the kernel keeps and cannot drop now, for their names or for others."""
    fields = text.split()
    if len(fields) != 7:
        raise ValueError(f"{_shown(text)} is not /proc/sys/fs/inode-state")
    return max(counter(fields[0]) - counter(fields[1]), 0)


def _dentries(text: bytes) -> tuple[int, int, int]:
    fields = text.split()
    if len(fields) != 6:
        raise ValueError(f"{_shown(text)} is not /proc/sys/fs/dentry-state")
    return counter(fields[0]), counter(fields[1]), counter(fields[4])


def reclaimable(text: bytes) -> int:
    """Bytes of /proc/meminfo that the kernel counts as caches of its own, most of them as available; 0 where that is
    not told."""
    return _kibibytes(text, b"SReclaimable:") if b"SReclaimable:" in text else 0


def index_nodes(text: bytes) -> int:
    """Of a slab's total_objects: nodes by which the kernel finds pages of files, those that are free again included."""
    fields = text.split(maxsplit=1)
    return counter(fields[0] if fields else b"")


def droppable_nodes(text: bytes) -> int:
    """/proc/vmstat: such nodes that remember nothing but pages that were taken; 0 on kernels that do not count them."""
    return _field(text, b"workingset_nodes ") if _has(text, b"workingset_nodes ") else 0


def nodes_in_memory(nodes: int, meminfo_text: bytes) -> int:
    """How many of these nodes may be of pages that cannot be dropped: of files in memory (tmpfs, also swapped out, and
    ramfs), or locked."""
    kept = sum(_kibibytes(meminfo_text, key) for key in (b"Shmem:", b"Unevictable:") if _has(meminfo_text, key))
    pages = (kept + swapped(meminfo_text)) // _PAGE_BYTES
    return max(min(nodes, _MOST_NODES * pages), 0)


def pinned(reclaimable_bytes: int, dentries: int, nodes: int = 0) -> int:
    """Of these caches what names in use, files that are kept without one, and nodes of files in memory may hold:
    whoever may make files in memory (tmpfs), or sockets, has as many as it likes."""
    return min(reclaimable_bytes, dentries * _DENTRY_BYTES + nodes * _INDEX_NODE_BYTES)


def swapped(text: bytes) -> int:
    """Bytes of /proc/meminfo that are on a swap device and not in memory as well; 0 on kernels without swap."""
    if b"SwapTotal:" not in text:
        return 0
    both = _kibibytes(text, b"SwapCached:") if b"SwapCached:" in text else 0
    return max(_kibibytes(text, b"SwapTotal:") - _kibibytes(text, b"SwapFree:") - both, 0)


def swap_free(text: bytes) -> int:
    """Bytes of /proc/meminfo that may still be swapped out; 0 on kernels without swap."""
    return _kibibytes(text, b"SwapFree:") if b"SwapFree:" in text else 0


def cpu_count(text: bytes) -> int:
    """How many CPUs a list such as `0-3,8` names (cpuset.cpus); 0 for an empty list."""
    cpus: set[int] = set()
    for part in text.strip().split(b",") if text.strip() else ():
        found = _CPU_RANGE.fullmatch(part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ValueError(f"{_shown(text)} is not a list of CPUs")
        cpus.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return len(cpus)


def _has(text: bytes, key: bytes) -> bool:
    return text.startswith(key) or b"\n" + key in text


def _field(text: bytes, key: bytes) -> int:
    """The number of line `key` (which ends in a blank); the key stands at a line's beginning."""
    start = text.find(b"\n" + key) + 1
    if not start and not text.startswith(key):
        raise ValueError(f"{key.decode().rstrip()} missing in {_shown(text)}")
    digits, end, _ = text[start + len(key) : start + len(key) + 21].partition(b"\n")
    if digits.isdigit() and end and (value := int(digits)) <= _LARGEST:
        return value
    raise ValueError(f"{key.decode()}{_shown(digits)} is not a counter")


def _match(pattern: re.Pattern[bytes], text: bytes, start: int) -> re.Match[bytes]:
    found = pattern.match(text, start) if start >= 0 else None
    if found is None:
        wanted = pattern.pattern.split(b" ", 1)[0].decode()
        raise ValueError(f"{wanted} and what follows it missing or no counters in {_shown(text)}")
    return found


def _throttled(found: re.Match[bytes], text: bytes, per_us: int) -> CpuThrottling:
    periods, throttled, spent = (_bounded(int(field), text) for field in found.groups())
    return CpuThrottling(periods, throttled, spent // per_us)


def _memory(found: re.Match[bytes], text: bytes, counts: tuple[bytes, ...]) -> Memory:
    inactive_anon, active_anon, inactive_file, active_file, unevictable = map(int, found.groups())
    listed, cache = inactive_anon + active_anon + unevictable, inactive_file + active_file
    if listed + cache > _LARGEST:
        raise ValueError(f"{listed} and {cache} are beyond any memory in {_shown(text)}")
    shared, files, swapped = (_field(text, key) if _has(text, key) else 0 for key in counts)
    lazy = _given_up(cache, files - shared - swapped) if all(_has(text, key) for key in counts[:2]) else 0
    return listed + lazy, cache - lazy


def _given_up(cache: int, files: int) -> int:
    """Anonymous memory that its owner gave up (MADV_FREE) stands among the file pages until the kernel wants it, also
    where the owner has written it again, and cannot be told from that: it is in use.

    So much more is in the lists of files than there are pages of files. What is in no list of files takes as much off:
    pages of files that are locked, which count by themselves, so that half of such memory may hide. The lists of
    anonymous memory tell no more: what was read back beside a page that was wanted, and rests of large pages of which
    most was freed, are there and nobody's.
    """
    return max(cache - max(files, 0), 0)


def _kibibytes(text: bytes, key: bytes) -> int:
    found = re.search(rb"^" + key + rb" +(\d{1,15}) kB\n", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{key.decode()} missing in {_shown(text)}")
    return int(found[1]) * 1024


def _stall(text: bytes, fields: tuple[bytes, ...]) -> Stall:
    avg10, avg60, avg300 = map(float, fields[:3])
    if max(avg10, avg60, avg300) > 100:
        raise ValueError(f"{_shown(text)} stalls for more than all the time")
    return Stall(avg10, avg60, avg300, _bounded(int(fields[3]), text))


def _lines(text: bytes) -> list[bytes]:
    """Complete lines; a file that ends within one was cut short."""
    if text and not text.endswith(b"\n"):
        raise ValueError(f"{_shown(text)} ends within a line")
    return text.split(b"\n")[:-1]


def _bounded(value: int, text: bytes) -> int:
    if value > _LARGEST:
        raise ValueError(f"{value} is beyond any counter in {_shown(text)}")
    return value


def _shown(text: bytes) -> str:
    return repr(text[:_SHOWN_BYTES].decode(errors="replace"))
