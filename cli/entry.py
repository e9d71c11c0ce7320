"""The installed command. `sublet agent` runs on every node of a fleet, so it loads the agent and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable

from cli.interrupts import be_raised, end_at_once


def run() -> None:
    """The entry point of `sublet` and `kubectl-sublet`."""
    end_at_once()
    main, arguments = _chosen(sys.argv[1:])
    be_raised()
    code = main(arguments)
    end_at_once()  # the interpreter's own end stands no exceptions
    sys.exit(code)


def _chosen(arguments: list[str]) -> tuple[Callable[[list[str]], int], list[str]]:
    """Whose `main`, and what it is told."""
    if arguments[:1] == ["agent"]:
        from agent.__main__ import main as agent

        return agent, arguments[1:]
    from cli.main import main

    return main, arguments
