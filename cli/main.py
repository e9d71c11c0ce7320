"""The `sublet` command; also installed as `kubectl-sublet`, so that `kubectl sublet …` is the same.

A failure with an owner is one line on stderr and exit code 2; a traceback is always a bug of ours.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated, Any, cast

import typer

from cli import admission, agent, demo, record, scheduler, up
from cli.explain.command import app as explain_app
from cli.faults import faults, missing_part
from cli.preflight.command import preflight
from cli.replay.command import replay
from cli.simulate.cluster import simulate_cluster
from cli.simulate.node import app as simulate_app
from cli.submit.command import SubmitCommand, submit
from cli.top.command import top
from cli.uninstall.command import uninstall

EXIT_FAULT = 2
EXIT_INTERRUPTED = 130
_PLAIN_WIDTH = 120
"""Of help that goes into a file or a pipe."""
# Newer typers carry their own click, older ones use the installed one: both raise what this finds.
_CommandLineError = cast(
    type[Exception], next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
)
# Arguments of the programs are theirs: what they accept, and their own --help, pass through untouched.
_PASS_THROUGH: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
}

app = typer.Typer(
    name="sublet",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Lets batch pods use what online services reserve but do not use, and gives it back at once.",
)
app.command(name="up")(up.up)
app.command(name="top")(top)
app.command(name="submit", cls=SubmitCommand)(submit)
app.command(name="demo")(demo.demo)
app.command(name="agent", **_PASS_THROUGH)(agent.agent)
app.command(name="scheduler", **_PASS_THROUGH)(scheduler.scheduler)
app.command(name="admission", **_PASS_THROUGH)(admission.admission)
app.command(name="preflight")(preflight)
app.command(name="uninstall")(uninstall)
app.command(name="record")(record.record_node)
app.command(name="replay")(replay)
app.add_typer(explain_app, name="explain")
simulate_app.command("cluster")(simulate_cluster)
app.add_typer(simulate_app, name="simulate")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sublet {version('sublet')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    return


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    # Boxes as wide as a terminal are for a terminal.
    terminal = sys.stdout.isatty()
    app.rich_markup_mode = "rich" if terminal else None
    width = {} if terminal else {"terminal_width": _PLAIN_WIDTH}
    try:
        result = app(args=arguments, prog_name="sublet", standalone_mode=False, **width)
    except ModuleNotFoundError as error:
        if not (what := missing_part(error)):
            raise
        return _fail(f"error: {what}", EXIT_FAULT)
    except faults() as fault:
        return _fail(f"error: {_one_line(str(fault))}", EXIT_FAULT)
    except _CommandLineError as error:
        return _fail(_told(error), EXIT_FAULT)
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has read enough (`| head`); the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _told(error: Exception) -> str:
    """What was wrong with the command line. Without any argument that is the help: some typers have printed it
    already and raise with no words, newer ones raise with it.
    """
    words = cast(Any, error).format_message().replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if not words or (context and words == context.get_help()):
        return str(words)
    return f"error: {_one_line(words)} (see `{_verb(error)} --help`)"


def _verb(error: Exception) -> str:
    """The command whose options were wrong, as it was typed: `sublet up`."""
    context = getattr(error, "ctx", None)
    return context.command_path if context else "sublet"


def _one_line(words: str) -> str:
    return " ".join(words.split())


def _fail(text: str, code: int) -> int:
    if text:
        print(text, file=sys.stderr)
    return code
