"""The installed command. `sublet agent` runs on every node of a fleet, so it loads the agent and nothing else."""

from __future__ import annotations

import sys


def run() -> None:
    """The entry point of `sublet` and `kubectl-sublet`."""
    if sys.argv[1:2] == ["agent"]:
        from agent.__main__ import main as agent

        sys.exit(agent(sys.argv[2:]))
    from cli.main import main

    sys.exit(main(sys.argv[1:]))
