"""`python -m cli`: the `sublet` command where its script is not on the path."""

from __future__ import annotations

from cli.entry import run

if __name__ == "__main__":
    run()
