"""The installed command. `sublet agent` runs on every node of a fleet, so it loads the agent and nothing else."""

from __future__ import annotations

import sys

from cli.interrupts import be_raised, end_at_once


def run() -> None:
    """The entry point of `sublet` and `kubectl-sublet`."""
    end_at_once()
    if sys.argv[1:2] == ["agent"]:
        from agent.__main__ import main

        arguments = sys.argv[2:]
    else:
        from cli.main import main

        arguments = sys.argv[1:]
    be_raised()
    code = main(arguments)
    end_at_once()  # the interpreter's own end stands no exceptions
    sys.exit(code)
