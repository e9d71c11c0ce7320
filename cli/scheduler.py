"""`sublet scheduler`: the central scheduler, as a Deployment's pod runs it."""

from __future__ import annotations

import typer


def scheduler(context: typer.Context) -> int:
    """Run the scheduler; arguments are its own (`sublet scheduler --help`)."""
    # Imported here: the scheduler's image holds none of what the other verbs need, nor the other way round.
    from scheduler.__main__ import main

    return main(context.args)
