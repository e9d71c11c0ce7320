"""Pages written by hand: every link leads somewhere, every command, manifest and setting shown is one that works."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.main import main
from cli.simulate.cluster_objects import CLUSTER_KINDS
from cli.simulate.cluster_run import decide
from cli.simulate.manifests import Manifests
from local.simnodes.settings import Simulation
from scheduler.settings import SchedulerSettings

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("bench/*.md")]
)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_CODE = re.compile(r"^```.*?^```", re.M | re.S)
_COMMAND = re.compile(r"^(?:\$ |sudo )?(?:\.venv/bin/)?sublet ((?:[^\n]*\\\n)*[^\n]*)", re.M)
_SPOKEN_OF = re.compile(r"`(?:sudo \.venv/bin/)?sublet ([^`\n]+)`")
_HISTORY = ("CHANGELOG.md",)
_SHOWN = re.compile(r"^```yaml\n(.*?)^```", re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The names by which a page's headings are linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Within the repository; others are not looked up."""
    assert list(dead_links(page)) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](#one-two) [b](#three) [c](gone.md) [d](page.md#one-two) [e](https://example.org/x)\n"
    )
    assert list(dead_links(page)) == ["#three", "gone.md"]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each `sublet …` in blocks and in sentences; what comes after a comment, a pipe or `--` is left out."""
    text = page.read_text()
    found = [shown for block in _CODE.findall(text) for shown in _COMMAND.findall(block)]
    for command in (*found, *_SPOKEN_OF.findall(_CODE.sub("", text))):
        words = list(shlex.shlex(command.replace("\\\n", " ").replace("|", " | "), posix=True, punctuation_chars=True))
        ends = (words.index(mark) for mark in ("|", "&", ">", ";", "&&", "--") if mark in words)
        yield words[: min(ends, default=len(words))]


@cache
def help_of(*verbs: str) -> str:
    """What `sublet VERBS --help` prints."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as environment, contextlib.redirect_stdout(printed):
        environment.setenv("COLUMNS", "200")
        with contextlib.suppress(SystemExit):
            main([*verbs, "--help"])
    return printed.getvalue()


def unknown(words: list[str]) -> list[str]:
    """The verbs and options of a command that its help does not have."""
    verbs = words[:2] if words[0] in ("explain", "simulate") else words[:1]
    if not re.search(rf"^\W*{verbs[0]}\b", help_of(), re.M):
        return verbs
    return [word for word in words if word.startswith("-") and not re.search(rf"{word}(?![\w-])", help_of(*verbs))]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in _HISTORY], ids=lambda page: page.name)
def test_commands_have_the_options_that_are_shown(page: Path) -> None:
    assert [(words, unknown(words)) for words in commands(page) if unknown(words)] == []


def test_an_option_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("`sublet up --bare`\n```\n$ sublet up --bear \\\n  --images x | grep --y  # --z\nsublet fly\n```\n")
    assert [unknown(words) for words in commands(page)] == [["--bear"], ["fly"], []]


def shown() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each YAML block of the guide to scheduling, numbered."""
    for number, text in enumerate(_SHOWN.findall((ROOT / "docs/scheduling.md").read_text())):
        yield f"block {number}", list(yaml.safe_load_all(text))


BLOCKS = dict(shown())


@pytest.mark.parametrize("block", [name for name, found in BLOCKS.items() if "kind" in found[0]])
def test_manifests_are_read_and_placed(block: str) -> None:
    """On a node with room for all of it."""
    found = Manifests(CLUSTER_KINDS)
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": amounts}}
    for document in (node, *BLOCKS[block]):
        found.add(document, block)
    pods = sum(document["kind"] == "Pod" for document in BLOCKS[block])
    decided = decide(found, 1.0, SchedulerSettings())
    assert not found.skipped and not decided.pending
    assert len(decided.placements) == pods


@pytest.mark.parametrize("block", [name for name, found in BLOCKS.items() if "kind" not in found[0]])
def test_settings_are_settings(block: str) -> None:
    (told,) = BLOCKS[block]
    assert msgspec.convert(told, SchedulerSettings) != SchedulerSettings()


def test_a_topology_that_is_shown_is_one_of_the_simulated_nodes() -> None:
    """Whoever types the example on `sublet up` with simulated nodes gets what it says."""
    shown = "\n".join(found for page in PAGES for found in _SHOWN.findall(page.read_text()))
    keys = set(re.findall(r"(?:required|preferred)-topology: ([\w./-]+)", shown))
    assert keys and keys <= set(Simulation(1).labels_of(0))


_PATH = re.compile(r"`(\w+(?:/\w+)+(?:\.py)?/?)`")
_PROGRAMS = ("", "agent", "scheduler", "admission")


def missing_paths(text: str) -> list[str]:
    """Paths in code quotes that are in none of the packages; `.py` and a trailing slash may be left out."""
    places = [ROOT / package for package in _PROGRAMS]
    return [
        path
        for path in _PATH.findall(text)
        if not any((place / path).exists() or (place / f"{path}.py").exists() for place in places)
    ]


def test_the_architecture_names_files_that_exist() -> None:
    """By their path below the repository or below a program's package."""
    assert missing_paths((ROOT / "ARCHITECTURE.md").read_text()) == []
    assert missing_paths("`agent/tick.py`, `core/gone`, `edge/brake`, `docs/none.py`") == ["core/gone", "docs/none.py"]


def test_the_readme_can_be_read_at_once() -> None:
    """What is longer belongs into docs/."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
