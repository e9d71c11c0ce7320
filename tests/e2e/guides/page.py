"""The commands of a page: its blocks `sh` (commands alone) and `console` (commands after `$ `, each with its output).

Other blocks hold no commands: `yaml`, `json`, `python`, `text`. A comment before a block says how its commands are run, in the
words of a guide (`guide.py`), after `run:`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.e2e.guides.guide import Step, commands_of, options_of

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("bench/*.md"),
        *ROOT.glob("cgroup_fixtures/*.md"),
    ]
    if path.name != "CHANGELOG.md"
)
"""All but the guides, each of which is a story of its own."""
_BLOCK = re.compile(r"(?:^<!-- run: ([^>]*) -->\n)?^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.M)
_HEADING = re.compile(r"^#+ (.*)$", re.M)
_COMMANDS = ("sh", "console")
_OTHERS = ("yaml", "json", "python", "text")


def steps(text: str) -> tuple[Step, ...]:
    """All commands of a page in their order.

    Raises ValueError for a block that does not say what it is, and for code that stands in no block.
    """
    found: list[Step] = []
    for block in _BLOCK.finditer(text):
        options, language, body = block.groups()
        if language not in (*_COMMANDS, *_OTHERS):
            raise ValueError(f"a block of {language!r}: none of {', '.join(_COMMANDS + _OTHERS)}")
        if language not in _COMMANDS:
            continue
        chosen = options_of(options or "")
        heading = [title[1] for title in _HEADING.finditer(text, 0, block.start())][-1:]
        for command, promised in commands_of(body) if language == "console" else _plain(body):
            until, fails = float(chosen.get("until", 0)), "fails" in chosen
            found.append(Step(len(found) + 1, "".join(heading), command, promised, until, fails=fails))
    if indented := re.search(r"(?:\A|\n)\n {4}(?! )[^\n]*", _BLOCK.sub("", text)):
        raise ValueError(f"code that stands in no block: {indented[0].strip()}")
    return tuple(found)


def _plain(body: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commands of a block without output; one ends where the shell would run it."""
    lines: list[str] = []
    for line in body.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        lines.append(line)
        command = "\n".join(lines)
        if _complete(command):
            yield command, ()
            lines = []
    if lines:
        raise ValueError(f"a command without an end: {lines[0]}")


def _complete(command: str) -> bool:
    if command.endswith("\\"):
        return False
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
    # A here-document without its end is a warning only.
    return done.returncode == 0 and not done.stderr


class Tier(StrEnum):
    """How the commands of a page are tried: in the normal tier, on a running cluster, or not, for a reason that is listed."""

    FAST = "fast"
    CLUSTER = "cluster"
    LISTED = "listed"


FAST = (
    ("docs/kueue.md", "Look before you install"),
    ("docs/replay.md", ""),
    ("docs/simulate.md", "What comes out"),
    ("docs/simulate-cluster.md", "What comes out"),
    ("docs/simulate-cluster.md", "Quota alone"),
    ("docs/simulate-cluster.md", "More nodes"),
    ("docs/using.md", "Decisions without a cluster"),
)
"""(page, heading or nothing for all): commands that need no cluster."""

_DEPLOYED = "on a bare cluster with images of its own: tests/e2e/deploy does the same"
_BENCH = "measures for minutes: tests/bench tries its parts"
_STARTS = "runs until Ctrl-C: tests/e2e/test_up.py and test_up_choices.py start it, and so does this test for all pages"
LISTED = (
    (
        "README.md",
        "See it",
        "make run",
        "a minute and a half: tests/e2e/test_demo.py, and the transcript is compared there",
    ),
    ("README.md", "On a cluster", "", _DEPLOYED),
    (
        "docs/deploy.md",
        "Images",
        "buildah",
        "needs a container engine: tests/architecture/test_deploy_images.py reads the Containerfile",
    ),
    ("docs/deploy.md", "With Helm", "", "needs helm: tests/architecture/test_deploy_chart_helm.py where there is one"),
    ("docs/deploy.md", "", "", _DEPLOYED),
    ("docs/security.md", "", "", "asks programs that deploy/ installed: tests/e2e/deploy/test_6_callers.py"),
    ("docs/monitoring.md", "Scraping a cluster", "", f"{_DEPLOYED}: test_6_callers.py"),
    ("docs/local.md", "", "sublet up", _STARTS),
    ("docs/local.md", "", "pytest", "is itself a test"),
    (
        "docs/simulated-nodes.md",
        "",
        "python -m local.simnodes",
        "runs until Ctrl-C: `sublet up --simulated-nodes` starts it in docs/scheduling.md",
    ),
    ("bench/README.md", "", "", _BENCH),
    (
        "cgroup_fixtures/README.md",
        "",
        "python tests/guest/guest.py",
        "boots a guest for minutes: tests/guest boots the same",
    ),
)
"""(page, heading or nothing, how the command begins, why it is not run here)."""


class Command(NamedTuple):
    """One command of a page, and how it is tried."""

    page: str
    step: Step
    tier: Tier

    @property
    def id(self) -> str:
        """The name of its test."""
        return f"{self.page}-{self.step.id}"


def commands() -> tuple[Command, ...]:
    """Every command of every page."""
    return tuple(
        Command(page, step, _tier(page, step))
        for page, text in ((str(path.relative_to(ROOT)), path.read_text()) for path in PAGES)
        for step in steps(text)
    )


def _tier(page: str, step: Step) -> Tier:
    if any(matches(row, page, step) for row in FAST):
        return Tier.FAST
    return Tier.LISTED if any(matches(row, page, step) for row in LISTED) else Tier.CLUSTER


def matches(row: tuple[str, ...], page: str, step: Step) -> bool:
    """Whether a row of FAST or LISTED means that command."""
    name, heading, begin = (*row, "")[:3]
    return name == page and heading in ("", step.heading) and step.command.startswith(begin)


def folder(at: Path) -> Path:
    """A folder like a clone's, in which commands leave their files: its entries lead to the true ones."""
    at.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name in (".venv", "Makefile") or not entry.name.startswith("."):
            (at / entry.name).symlink_to(entry)
    return at


def untidy(printed: str) -> list[str]:
    """Lines that are padded or coloured, which is for terminals alone."""
    return [line for line in printed.splitlines() if line != line.rstrip() or "\x1b" in line]
