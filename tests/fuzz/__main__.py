"""`python -m tests.fuzz --minutes 10`: look for inputs that break a parser; each finding becomes a regression.

Ends with 1 where something was found; it then lies in corpus/TARGET/finding-…, where tests/fuzz/test_corpus.py
fails until the parser keeps its contract.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.engine import Search
from tests.fuzz.targets import TARGETS

_TURN_SECONDS = 2.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", default="1", help="another seed tries other inputs")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default: all")
    options = parser.parse_args()
    if unknown := sorted(set(options.targets) - TARGETS.keys()):
        parser.error(f"unknown target {', '.join(unknown)}")
    searches = [Search(name, TARGETS[name], options.seed) for name in options.targets or TARGETS]
    for search in _turns(searches, options.minutes * 60):
        search.step()
    for search in searches:
        print(search.summary)
    found = [(search.name, *finding) for search in searches for finding in search.findings.values()]
    for name, text, breach in found:
        print(f"\n{name}: {breach.kind}\nkept in {_keep(name, text)}\n{text[:300]!r}\n{breach.detail}")
    print(f"\n{sum(search.runs for search in searches)} inputs, {len(found)} findings")
    return 1 if found else 0


def _turns(searches: Sequence[Search], seconds: float) -> Iterator[Search]:
    """Each search in its turn for about the same time, until the time is over."""
    end = time.monotonic() + seconds
    turn_seconds = min(_TURN_SECONDS, seconds / len(searches))
    for search in itertools.cycle(searches):
        turn_end = time.monotonic() + turn_seconds
        while (now := time.monotonic()) < min(turn_end, end):
            yield search
        if now >= end:
            return


def _keep(name: str, text: bytes) -> Path:
    path = Path(__file__).parent / "corpus" / name / f"finding-{hashlib.sha256(text).hexdigest()[:8]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    return path


if __name__ == "__main__":
    raise SystemExit(main())
