"""`sublet agent`: the node agent, as a DaemonSet's pod runs it."""

from __future__ import annotations

import typer


def agent(context: typer.Context) -> int:
    """Run the node agent; arguments are its own (`sublet agent --help`)."""
    # Imported here: the agent's image holds none of what the other verbs need, nor the other way round.
    from agent.__main__ import main

    return main(context.args)
