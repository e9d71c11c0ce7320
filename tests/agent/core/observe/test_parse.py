"""Kernel text becomes numbers, garbage becomes one clear ValueError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe import parse
from agent.core.observe.observation import CpuThrottling, DiskBytes, MemoryEvents, Stall

V1_MEMORY = (
    b"cache 9297920\nrss 15007744\ninactive_anon 7\nactive_anon 8\ninactive_file 9\nactive_file 10\nunevictable 11\n"
    b"hierarchical_memory_limit 9223372036854771712\ntotal_cache 279367680\ntotal_rss 42721280\n"
    b"total_inactive_anon 27541504\ntotal_active_anon 1613824\ntotal_inactive_file 184639488\n"
    b"total_active_file 85643264\ntotal_unevictable 22556672\n"
)
V2_MEMORY = (
    b"anon 1228800\nfile 4096000\nkernel 262144\nshmem 0\nfile_dirty 0\ninactive_anon 1200000\nactive_anon 28800\n"
    b"inactive_file 4000000\nactive_file 96000\nunevictable 5\nslab_reclaimable 1\nworkingset_refault_anon 0\n"
)
V1_CPU_STAT = b"nr_periods 9\nnr_throttled 2\nthrottled_time 5999\nnr_bursts 0\nburst_time 0\n"
V2_CPU_STAT = (
    b"usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\ncore_sched.force_idle_usec 0\n"
    b"nr_periods 10\nnr_throttled 3\nthrottled_usec 4567\nnr_bursts 0\nburst_usec 0\n"
)
V2_EVENTS = b"low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 0\n"
PSI = b"some avg10=1.50 avg60=0.25 avg300=100.00 total=7\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=6\n"
CALM = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
IO_STAT = (
    b"8:16 rbytes=1000 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n8:0 \n"
    b"254:0 rbytes=5 wbytes=6 rios=1 wios=1 dbytes=3 dios=4 cost.usage=3\n"
)
BLKIO = (
    b"254:0 Read 1000\n254:0 Write 20\n254:0 Sync 1020\n254:0 Async 0\n254:0 Discard 0\n254:0 Total 1020\n"
    b"8:0 Read 5\n8:0 Write 6\n8:0 Total 11\nTotal 1031\n"
)
PROC_STAT = b"cpu  10 1 20 1000 500 3 4 99 0 0\ncpu0 1 1\n"
MEMINFO = b"MemTotal:       24684084 kB\nMemFree:        23952420 kB\nMemAvailable:   24253924 kB\nBuffers:           10200 kB\n"
ANONYMOUS = (
    b"Active(anon):       1000 kB\nInactive(anon):   523824 kB\nActive(file):    1830000 kB\nInactive(file):  3139000 kB\n"
    b"Cached:          3918624 kB\nUnevictable:       23000 kB\nAnonPages:       1588000 kB\nShmem:              8400 kB\n"
)

CASES: list[tuple[str, Callable[[bytes], Any], bytes, Any]] = [
    ("counter", parse.counter, b"123\n", 123),
    ("largest counter", parse.counter, b"9223372036854775807\n", (1 << 63) - 1),
    ("whole number", parse.whole_number, b"123\n", 123),
    ("no limit on v1", parse.whole_number, b"-1\n", -1),
    ("percent", parse.whole_percent, b"20.00\n", 20),
    ("percent, cut", parse.whole_percent, b"12.99\n", 12),
    ("percent without a fraction", parse.whole_percent, b"0\n", 0),
    ("all of it", parse.whole_percent, b"max\n", 100),
    ("cpuacct.usage", parse.v1_cpu_time, b"812345678901\n", (812345678901, None)),
    ("v2 cpu.stat", parse.v2_cpu_time, V2_CPU_STAT, (123456000, CpuThrottling(10, 3, 4567))),
    (
        "v2 cpu.stat, never limited",
        parse.v2_cpu_time,
        b"usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        (5000, CpuThrottling(0, 0)),
    ),
    (
        "v2 cpu.stat without the cpu controller",
        parse.v2_cpu_time,
        b"usage_usec 5\nuser_usec 5\nsystem_usec 0\n",
        (5000, None),
    ),
    # 5999 ns are 5 whole us.
    ("v1 cpu.stat", parse.v1_throttling, V1_CPU_STAT, CpuThrottling(9, 2, 5)),
    (
        "v1 cpu.stat before 5.14",
        parse.v1_throttling,
        b"nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        CpuThrottling(0, 0),
    ),
    # 27541504 + 1613824 + 22556672; 184639488 + 85643264
    ("v1 memory.stat counts totals", parse.v1_memory, V1_MEMORY, (51712000, 270282752)),
    # 1200000 + 28800 + 5; 4000000 + 96000
    ("v2 memory.stat", parse.v2_memory, V2_MEMORY, (1228805, 4096000)),
    (
        "v1 memory that was given up (MADV_FREE) and written again",
        parse.v1_memory,
        V1_MEMORY.replace(
            b"total_rss 42721280", b"total_shmem 100000000\ntotal_rss_huge 1\ntotal_rss 142721280"
        ).replace(b"total_cache 279367680", b"total_swapcached 5\ntotal_cache 179273477"),
        (242721280, 79273472),
    ),
    (
        "v2 memory that was given up and written again",
        parse.v2_memory,
        V2_MEMORY.replace(b"anon 1228800\nfile 4096000", b"anon 3228800\nfile 2096005").replace(
            b"shmem 0", b"shmem 100000"
        ),
        (3328800, 1996005),
    ),
    (
        "beside what is in lists of anonymous memory and mapped by nobody",
        parse.v2_memory,
        V2_MEMORY.replace(b"anon 1228800\nfile 4096000", b"anon 28800\nfile 2096005"),
        (3228800, 2096005),
    ),
    (
        "anonymous by that count",
        parse.v2_anonymous,
        V2_MEMORY.replace(b"anon 1228800\nfile 4096000", b"anon 2000000\nfile 3324805"),
        (2000000, 1200000, 0),
    ),
    ("memory of a device", parse.v2_memory, V2_MEMORY.replace(b"anon 1228800", b"anon 9228800", 1), (1228805, 4096000)),
    ("more mapped than there is", parse.v2_memory, V2_MEMORY.replace(b"shmem 0", b"shmem 99000000"), (5324805, 0)),
    ("anonymous memory of v2", parse.v2_anonymous, V2_MEMORY, (1228805, 1200000, 0)),
    ("oom_control", parse.v1_oom_kills, b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
    ("oom_control before 4.13", parse.v1_oom_kills, b"oom_kill_disable 0\nunder_oom 0\n", 0),
    ("memory.events", parse.v2_memory_events, V2_EVENTS, MemoryEvents(2, 3, 4, 5)),
    ("memory.events before 4.13", parse.v2_memory_events, b"low 1\nhigh 2\nmax 3\noom 4\n", MemoryEvents(2, 3, 4, 0)),
    ("pressure", parse.stalls, PSI, (Stall(1.5, 0.25, 100.0, 7), Stall(0.25, 0.0, 0.0, 6))),
    ("cpu.pressure before 5.13", parse.stalls, PSI.split(b"full")[0], (Stall(1.5, 0.25, 100.0, 7), None)),
    ("no pressure ever", parse.stalls, CALM, (Stall(), Stall())),
    ("io.stat", parse.v2_disk, IO_STAT, DiskBytes(1005, 26)),
    ("io.stat without traffic", parse.v2_disk, b"", DiskBytes(0, 0)),
    ("blkio", parse.v1_disk, BLKIO, DiskBytes(1005, 26)),
    ("blkio without traffic", parse.v1_disk, b"Total 0\n", DiskBytes(0, 0)),
    # user 10 + nice 1 + system 20 + irq 3 + softirq 4
    ("/proc/stat of a kernel without steal", parse.busy_ticks, b"cpu  10 1 20 1000 500 3 4\n", 38),
    ("/proc/stat", parse.busy_ticks, PROC_STAT, 137),
    ("meminfo in bytes", parse.meminfo, MEMINFO, (24684084 * 1024, 24253924 * 1024, 23952420 * 1024)),
    (
        "available memory that was given up and may be in use again",
        parse.meminfo,
        MEMINFO + ANONYMOUS,
        (24684084 * 1024, (24253924 - 1048576) * 1024, 23952420 * 1024),
    ),
    (
        "locked pages of files",
        parse.meminfo,
        MEMINFO + ANONYMOUS.replace(b"23000", b"2000000").replace(b"3918624", b"5895624"),
        (24684084 * 1024, 24253924 * 1024, 23952420 * 1024),
    ),
    (
        "in lists of anonymous memory and mapped by nobody: read back, or rests of large pages",
        parse.meminfo,
        MEMINFO + ANONYMOUS.replace(b"523824", b"2523824"),
        (24684084 * 1024, (24253924 - 1048576) * 1024, 23952420 * 1024),
    ),
    (
        "a kernel that does not tell of files",
        parse.meminfo,
        MEMINFO + ANONYMOUS.replace(b"Cached:", b"Cachet:"),
        (24684084 * 1024, 24253924 * 1024, 23952420 * 1024),
    ),
    (
        "more given up than is available",
        parse.meminfo,
        (MEMINFO + ANONYMOUS.replace(b"1588000", b"98000000").replace(b"3139000", b"93139000")),
        (24684084 * 1024, 0, 23952420 * 1024),
    ),
    (
        "memory of a device, in no list",
        parse.meminfo,
        MEMINFO + ANONYMOUS.replace(b"1588000", b"98000000").replace(b"3918624", b"4967200"),
        (24684084 * 1024, 24253924 * 1024, 23952420 * 1024),
    ),
    (
        "a kernel that does not tell",
        parse.meminfo,
        MEMINFO + ANONYMOUS.replace(b"Shmem:", b"Shmen:"),
        (24684084 * 1024, 24253924 * 1024, 23952420 * 1024),
    ),
    ("names of files in use", parse.dentries_in_use, b"1839466\t836921\t45\t0\t66\t0\n", 1002545),
    ("all of them may go", parse.dentries_in_use, b"5 6 45 0 66 0\n", 0),
    ("names of files that are there", parse.dentries_of_files, b"373560\t370822\t45\t0\t93212\t0\n", 280348),
    ("none are", parse.dentries_of_files, b"5 5 45 0 66 0\n", 0),
    ("files in use", parse.inodes_in_use, b"430047\t150\t0\t0\t0\t0\t0\n", 429897),
    ("no file is", parse.inodes_in_use, b"5 6 0 0 0 0 0\n", 0),
    ("nodes that find pages of files", parse.index_nodes, b"89922 N0=89922\n", 89922),
    ("those of pages that were taken", parse.droppable_nodes, b"nr_free_pages 1\nworkingset_nodes 75341\n", 75341),
    ("a kernel that counts none such", parse.droppable_nodes, b"nr_free_pages 1\n", 0),
    ("caches of the kernel", parse.reclaimable, MEMINFO + b"SReclaimable:  10 kB\n", 10240),
    ("no word of such", parse.reclaimable, MEMINFO, 0),
    ("caches that memory.stat tells of", parse.kernel_caches, V2_MEMORY, 1),
    ("v1 tells of none", parse.kernel_caches, V1_MEMORY, 0),
    ("no swap", parse.swapped, MEMINFO.split(b"SwapTotal")[0], 0),
    ("swap in use", parse.swapped, b"SwapTotal: 9 kB\nSwapFree: 4 kB\n", 5 * 1024),
    ("free swap", parse.swap_free, b"SwapTotal: 9 kB\nSwapFree: 4 kB\n", 4 * 1024),
    ("free swap without swap", parse.swap_free, MEMINFO.split(b"SwapTotal")[0], 0),
    ("in memory as well", parse.swapped, b"SwapCached: 2 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n", 3 * 1024),
    ("read back since", parse.swapped, b"SwapCached: 6 kB\nSwapTotal: 9 kB\nSwapFree: 4 kB\n", 0),
    ("one CPU", parse.cpu_count, b"7\n", 1),
    ("CPU ranges", parse.cpu_count, b"0-3,8,10-11\n", 7),
    ("no CPU given", parse.cpu_count, b"\n", 0),
    ("refaults of v1", parse.refaults, b"workingset_refault_file 3\ntotal_workingset_refault_file 9\n", 9),
    (
        "refaults, both kinds",
        parse.refaults,
        b"a 1\nworkingset_refault_anon 2\nworkingset_refault_file 3\nworkingset_restore_file 8\n",
        5,
    ),
    ("refaults of old kernels", parse.refaults, b"workingset_refault 7\n", 7),
    ("no refaults", parse.refaults, b"workingset_restore_file 8\n", None),
    (
        "vmstat",
        parse.vmstat,
        b"workingset_refault_file 3\npgsteal_kswapd 4\npgsteal_direct 5\npgsteal_proactive 9\n",
        (3, 9),
    ),
    ("stops", parse.v2_limit_hits, b"low 1\nhigh 2\nmax 3\noom 4\n", 5),
    ("processes, no limit", parse.pids_limit, b"max\n", 0),
    ("processes", parse.pids_limit, b"4096\n", 4096),
    ("no process at all", parse.pids_limit, b"0\n", 1),
    ("tasks", parse.task_count, b"4.26 3.39 1.78 5/134 17344\n", 134),
]


@pytest.mark.parametrize(("parser", "text", "value"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_numbers_of_each_file(parser: Callable[[bytes], Any], text: bytes, value: Any) -> None:
    """Worked by hand from text as kernels print it."""
    assert parser(text) == value


KERNEL_MEMORY: dict[str, tuple[bytes, int, int]] = {
    "without the caches of files": (b"anon 1\nslab_reclaimable 7\nslab_unreclaimable 8\n", 100, 53),
    "v1 does not tell those": (b"cache 1\n", 100, 60),
    "cut short": (b"anon 1\nslab_reclaimable 7", 100, 60),
    "less is charged than memory.stat said": (b"slab_reclaimable 7\n", 39, 0),
}


@pytest.mark.parametrize(("text", "charged", "expected"), KERNEL_MEMORY.values(), ids=KERNEL_MEMORY.keys())
def test_kernel_memory(text: bytes, charged: int, expected: int) -> None:
    """Beside 30 bytes of processes and 10 of page cache."""
    assert parse.kernel_memory(text, charged, 30, 10) == expected


GARBAGE: list[tuple[Callable[[bytes], Any], bytes]] = [
    *(
        (parse.counter, text)
        for text in (b"", b"\n", b"max\n", b"12 13\n", b"0x10", b"1e3", b"\xff\xfe", b"1\n2\n", b"1_0\n")
    ),
    *((parse.counter, text) for text in (b"-1\n", b"+5\n", b"9223372036854775808\n", "٣".encode(), b"9" * 400)),
    *((parse.whole_number, text) for text in (b"", b"max\n", b"--1", b"-", b"1e3", b"-9223372036854775808")),
    *((parse.whole_percent, text) for text in (b"", b"-1", b"101.00", b"1000", b"x.00", b"5.x", b".5", b"\xd9\xa3")),
    (parse.v2_cpu_time, b"usage_usec 12"),
    (parse.v2_cpu_time, b"user_usec 12\n"),
    (parse.v2_cpu_time, b"usage_usec 9223372036854775807\n"),
    (parse.v2_cpu_time, b"usage_usec 5\nnr_periods x\n"),
    (parse.v2_cpu_time, V2_CPU_STAT.split(b"throttled_usec")[0]),
    (parse.v1_throttling, b""),
    (parse.v1_throttling, b"nr_periods 9\nnr_throttled -2\nthrottled_time 5\n"),
    (parse.v1_throttling, b"nr_periods 9\nnr_throttled 2\nthrottled_time 59"),
    (parse.v1_memory, b"total_inactive_anon 5\n"),
    (parse.v1_memory, V1_MEMORY.replace(b"1613824", b"x")),
    (parse.v1_memory, V1_MEMORY[:-4]),
    (parse.v1_memory, V2_MEMORY),
    (parse.v1_memory, V1_MEMORY.replace(b"27541504", b"9223372036854775807")),
    (parse.v2_memory, V2_MEMORY.replace(b"active_file", b"active_fil")),
    (parse.v1_oom_kills, b"oom_kill 3\n"),
    (parse.v1_oom_kills, b"under_oom 0\noom_kill x\n"),
    (parse.v2_anonymous, V2_MEMORY.replace(b"refault_anon", b"refault")),
    (parse.v2_memory_events, b"low 1\nhigh 2\nmax 3\n"),
    (parse.v2_memory_events, V2_EVENTS.replace(b"max 3", b"max many")),
    (parse.stalls, b""),
    (parse.stalls, PSI.replace(b"1.50", b"nan")),
    (parse.stalls, PSI.replace(b"1.50", b"101.00")),
    (parse.stalls, PSI.replace(b"total=7", b"total=-7")),
    (parse.stalls, PSI[:-1]),
    (parse.stalls, PSI + b"more\n"),
    (parse.v2_disk, IO_STAT[:-1]),
    (parse.v2_disk, b"8:16 rbytes=x wbytes=1\n"),
    (parse.v2_disk, b"8:16 rbytes=9223372036854775807 wbytes=1\n8:0 rbytes=1 wbytes=1\n"),
    (parse.v1_disk, b""),
    (parse.v1_disk, BLKIO.replace(b"Read 1000", b"Read many")),
    (parse.v1_disk, BLKIO.removesuffix(b"Total 1031\n")),
    (parse.busy_ticks, b"intr 5\n"),
    (parse.busy_ticks, b"cpu 1 2 3\n"),
    (parse.busy_ticks, PROC_STAT.replace(b" 20 ", b" -20 ")),
    (parse.meminfo, b"MemTotal: 5 kB\n"),
    (parse.dentries_in_use, b"1839466\n"),
    (parse.dentries_of_files, b"1839466 5 45 0\n"),
    (parse.inodes_in_use, b"430047\n"),
    (parse.inodes_in_use, b"430047 x 0 0 0 0 0\n"),
    (parse.dentries_in_use, b"1839466 x 45 0 66 0\n"),
    *((parse.index_nodes, text) for text in (b"", b"\n", b"-1 N0=1\n", b"many\n")),
    (parse.droppable_nodes, b"workingset_nodes x\n"),
    (parse.reclaimable, b"SReclaimable: x kB\n"),
    (parse.swapped, b"SwapTotal: 5 kB\n"),
    (parse.swapped, b"SwapTotal: 5 kB\nSwapFree: x kB\n"),
    (parse.meminfo, MEMINFO.replace(b"24253924 kB", b"24253924")),
    (parse.meminfo, MEMINFO.replace(b"24684084", b"1")),
    *((parse.pids_limit, text) for text in (b"", b"-1", b"many")),
    *((parse.vmstat, text) for text in (b"", b"workingset_refault_file 3\n", b"pgsteal_kswapd 4\npgsteal_direct 5\n")),
    *((parse.v2_limit_hits, text) for text in (b"", b"high 1\n", b"high x\nmax 1\n")),
    *((parse.task_count, text) for text in (b"", b"1 2 3", b"1 2 3 4 5", b"1 2 3 4/x 5", b"1 2 3 4/-5 6")),
    *((parse.cpu_count, text) for text in (b"a", b"3-1", b"1,,2", b"0-", b"1-2-3", b"99999")),
]


@pytest.mark.parametrize(("parser", "text"), GARBAGE)
def test_garbage_is_never_a_number(parser: Callable[[bytes], Any], text: bytes) -> None:
    """Empty, foreign, negative, overflowing or cut-short text raises, and the message shows it."""
    with pytest.raises(ValueError, match=r"is not|missing|beyond|ends within|stalls|more memory"):
        parser(text)


def numbers(value: Any) -> Iterator[float]:
    """All numbers in what a parser answers."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    if isinstance(value, tuple):
        for part in value:
            yield from numbers(part)
    elif value is not None:
        yield value


PARSERS = sorted({case[1] for case in CASES}, key=lambda parser: parser.__name__)
TEXTS = [case[2] for case in CASES]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Real text with a piece replaced, removed or inserted."""
    text = draw(st.sampled_from(TEXTS))
    start = draw(st.integers(0, len(text)))
    return text[:start] + draw(st.binary(max_size=8)) + text[start + draw(st.integers(0, 12)) :]


@pytest.mark.parametrize("parser", PARSERS, ids=[parser.__name__ for parser in PARSERS])
@given(text=st.one_of(st.binary(max_size=200), damaged()))
def test_any_bytes_are_a_value_in_range_or_a_value_error(parser: Callable[[bytes], Any], text: bytes) -> None:
    """Nothing else escapes, and no counter is negative or beyond 63 bits."""
    try:
        value = parser(text)
    except ValueError:
        return
    lowest = -(1 << 63) if parser is parse.whole_number else 0
    assert all(lowest <= number < 1 << 63 for number in numbers(value))


@pytest.mark.parametrize(
    ("parser", "text"),
    [(case[1], case[2]) for case in CASES if len(case[2]) > 40],
    ids=[case[0] for case in CASES if len(case[2]) > 40],
)
def test_text_cut_short_is_never_a_smaller_number(parser: Callable[[bytes], Any], text: bytes) -> None:
    """Wherever the file ends, the answer is the whole one's, or that of fewer complete lines, or an error."""
    lines = text.splitlines(keepends=True)
    honest = []
    for count in range(len(lines) + 1):
        try:
            honest.append(parser(b"".join(lines[:count])))
        except ValueError:
            continue
    for end in range(len(text)):
        try:
            value = parser(text[:end])
        except ValueError:
            continue
        assert value in honest
