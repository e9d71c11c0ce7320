"""Commands that pages show: each is run as it stands, or listed with the reason why not; these need no cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.image import imread

from tests.e2e.guides.page import FAST, LISTED, ROOT, Command, Tier, commands, folder, matches, steps, untidy
from tests.e2e.guides.shell import Shell

COMMANDS = commands()
LONG = {"docs/replay.md"}
"""Pages about a whole day of ticks, which each command decides again: ten seconds of CPU each."""


@pytest.fixture(scope="module")
def shell(page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One terminal a page, in a folder that looks like a clone."""
    opened = Shell(folder(tmp_path_factory.mktemp("pages") / "clone"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("page", "command"),
    [
        pytest.param(found.page, found, id=found.id, marks=[pytest.mark.slow] if found.page in LONG else [])
        for found in COMMANDS
        if found.tier is Tier.FAST
    ],
    scope="module",
)
def test_a_command_prints_what_the_page_promises(shell: Shell, page: str, command: Command) -> None:
    # Where tests are dealt out to several processes, another one ran what stands before.
    shell.catch_up(
        before.step for before in COMMANDS[: COMMANDS.index(command)] if (before.page, before.tier) == (page, Tier.FAST)
    )
    broken = shell.run(command.step)
    assert not broken, f"{page}, {command.step.heading}: $ {command.step.command}\n{broken}"
    assert untidy(shell.printed) == []
    if command.step.command.endswith("--plot day.png"):
        assert_same_picture(shell.directory / "day.png", ROOT / "docs" / "day.png")


def assert_same_picture(drawn: Path, committed: Path) -> None:
    """Fonts differ from version to version; areas and lines do not."""
    fresh, shown = imread(drawn), imread(committed)
    assert fresh.shape == shown.shape
    assert abs(fresh - shown).mean() < 0.02, f"{committed} is not what the command draws: copy {drawn} there"


@pytest.mark.parametrize("row", [*FAST, *LISTED], ids=" ".join)
def test_each_row_of_the_tables_means_a_command(row: tuple[str, ...]) -> None:
    assert any(matches(row, command.page, command.step) for command in COMMANDS)


def test_what_is_neither_run_nor_listed_would_be_run_on_a_cluster() -> None:
    """A new block needs no entry to be tried."""
    tiers = {command.tier for command in COMMANDS}
    assert tiers == {Tier.FAST, Tier.CLUSTER, Tier.LISTED}
    assert {command.page for command in COMMANDS if command.tier is Tier.CLUSTER} >= {"README.md", "docs/using.md"}


PAGE = """# A page
```sh
# a comment
kubectl get pods   # its end
kubectl apply -f - <<EOF
kind: Pod
EOF
a --b='
  c'
d \\
  e
```
```yaml
not: a command
```
## Second
<!-- run: fails until=3 -->
```console
$ f
printed
```
"""


def test_commands_of_a_page() -> None:
    """Each ends where the shell would run it."""
    found = steps(PAGE)
    assert [step.command for step in found] == [
        "kubectl get pods   # its end",
        "kubectl apply -f - <<EOF\nkind: Pod\nEOF",
        "a --b='\n  c'",
        "d \\\n  e",
        "f",
    ]
    assert (found[-1].promised, found[-1].heading, found[-1].fails, found[-1].until_seconds) == (
        ("printed",),
        "Second",
        True,
        3,
    )


@pytest.mark.parametrize(
    "text",
    ["```\na\n```\n", "```bash\na\n```\n", "```sh\ncat <<EOF\n```\n", "text:\n\n    sublet up\n", "```sh\na '\n```\n"],
)
def test_code_that_cannot_be_tried_is_refused(text: str) -> None:
    """A block without a language, a command without an end, code by indentation."""
    with pytest.raises(ValueError):
        steps(text)


def test_padding_and_colours_are_found() -> None:
    assert untidy("a\nb \n\x1b[1mc\n") == ["b ", "\x1b[1mc"]
