"""`sublet demo`: batch work beside a service, today's way and Sublet's, on this machine."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from cli.interrupts import ending_at_once
from cli.tables import show as show_table
from cli.up import KernelChoice, simulated_text

if TYPE_CHECKING:
    from embedded.node.settings import Kernel
    from local.demo.results import Checks, DemoResult

PHASE_SECONDS = 16.0
EXIT_CHECK_FAILED = 1
EXIT_INCONCLUSIVE = 3
_SIGNALLED = 128


class DemoProgress:
    """Plain lines with the time that has passed; where there is a terminal, a live status below them too."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._status = console.status("", refresh_per_second=4) if console.is_terminal else None

    def __enter__(self) -> DemoProgress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status is not None:
            self._status.stop()

    def tell(self, line: str) -> None:
        """Print the line with its time; it also becomes the live status."""
        self._console.print(f"[{time.monotonic() - self._began:5.1f} s] {line}", markup=False, highlight=False)
        self.live(line)

    def live(self, line: str) -> None:
        """Replace the live status, where there is one."""
        if self._status is not None:
            self._status.update(line)


@ending_at_once()
def demo(
    phase_seconds: Annotated[
        float,
        typer.Option(min=4.0, max=120.0, help="Length of each of the three phases; the surge is its second half."),
    ] = PHASE_SECONDS,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all results there.")] = None,
    kernel: Annotated[
        KernelChoice, typer.Option(help="The real kernel, a simulated one, or the real one where this user may.")
    ] = KernelChoice.AUTO,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run on a busy machine, too; the numbers then show its other work.")
    ] = False,
) -> int:
    """Show batch work living off what a service leaves idle, and giving it back; about 90 seconds.

    As root on this machine's kernel; as an ordinary user on a simulated one, which it then says. Where other work keeps
    the machine busy it waits up to a minute for calm, and ends as soon as its numbers would be spoiled.

    Exit code 0 where all three checks hold, 1 where one does not, 2 where it cannot run, 3 where it is inconclusive:
    other work kept the machine busy, or its CPUs changed their speed.
    """
    # Imported here: an agent's image has no cryptography, and needs none.
    from embedded.node.settings import Kernel
    from local.choices import usable_kernel

    wanted = None if kernel is KernelChoice.AUTO else Kernel(kernel.value)
    found, why = usable_kernel(wanted, "sublet demo")
    if why:
        typer.echo(simulated_text(why))
    return asyncio.run(_demo(phase_seconds, json_file, found, anyway))


async def _demo(phase_seconds: float, json_file: Path | None, kernel: Kernel, anyway: bool) -> int:
    from local.demo.results import Inconclusive
    from local.demo.story import Demonstration
    from local.signals import EndingSignal

    task = asyncio.current_task()
    assert task is not None
    ending = EndingSignal(task)
    ending.listen()
    console = Console(soft_wrap=True)
    try:
        with DemoProgress(console) as progress:
            result = await Demonstration(phase_seconds, kernel, progress.tell, progress.live, anyway=anyway).run()
    except Inconclusive as found:
        console.print(f"inconclusive: {found}. Everything has been cleaned up.", markup=False, highlight=False)
        console.print("Run it again when this machine is calmer, or with --anyway.", markup=False, highlight=False)
        return EXIT_INCONCLUSIVE
    except asyncio.CancelledError:
        if ending.signal is None:
            raise
        console.print(f"ended by {ending.signal.name}; everything has been cleaned up", markup=False)
        return _SIGNALLED + ending.signal
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")
    show(console, result)
    return 0 if result.passed else EXIT_CHECK_FAILED


def show(console: Console, result: DemoResult) -> None:
    """The table, the offer, the verdict, the checks and the machine."""
    from local.demo.results import cut_told, kernel_told, offered_lines, others_told, table, verdict

    header, *rows = table(result.phases)
    shown = Table(title="the same load, three times", title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for index, column in enumerate(header):
        shown.add_column(column, justify="right" if index else "left", no_wrap=not index)
    for row in rows:
        shown.add_row(*row)
    console.print()
    show_table(console, shown)
    for line in (
        *offered_lines(result.phases),
        "",
        *([others_told(result.phases)] if others_told(result.phases) else []),
        verdict(result.phases),
        *([kernel_told(result.kernel)] if kernel_told(result.kernel) else []),
        "",
        *check_lines(result.checks),
        f"best effort's CPU ceiling: {cut_told(result.phases)}",
        f"load: {result.base_per_second:.0f}, in the surge {result.surge_per_second:.0f} requests a second of about "
        f"{result.request_cost_ms:.1f} ms CPU; {result.settings}",
        f"machine: {result.machine}; other work used {result.other_work_pct:.0f} % of the CPUs before the start",
        f"ready after {result.start_seconds:.1f} s, all of it took {result.took_seconds:.0f} s",
    ):
        console.print(line, markup=False, highlight=False)


def check_lines(checks: Checks) -> list[str]:
    """One line for each thing that must be true."""
    return [
        f"{_mark(checks.gang_whole)} the gang ran whole: {checks.gang_told}",
        f"{_mark(checks.service_spared)} the service was slowed less than beside Burstable pods: {checks.spared_told}",
        f"{_mark(checks.nothing_left)} nothing was left behind: {checks.left_told}",
    ]


def _mark(true: bool) -> str:
    return "ok  " if true else "FAIL"
