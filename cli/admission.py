"""`sublet admission`: the webhooks, as a Deployment's pod runs them."""

from __future__ import annotations

import typer


def admission(context: typer.Context) -> int:
    """Run the admission webhooks; arguments are their own (`sublet admission --help`)."""
    # Imported here: the program's image holds none of what the other verbs need, nor the other way round.
    from admission.__main__ import main

    return main(context.args)
