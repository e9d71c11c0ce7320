"""Commands of pages that need a running cluster: as they stand, all pages on one, and the page that starts its own on that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import ALWAYS_ROOM
from tests.e2e.guides.guide import Step
from tests.e2e.guides.page import Command, Tier, commands, folder, untidy
from tests.e2e.guides.shell import Shell

COMMANDS = tuple(found for found in commands() if found.tier is Tier.CLUSTER)
_OURS = ("sublet ", "kubectl sublet ")


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Who runs `sublet up` for all pages, with everything where it is by default."""
    clone = folder(tmp_path_factory.mktemp("pages") / "clone")
    # Whatever else this machine does, there is room.
    (clone / "room.yaml").write_text(ALWAYS_ROOM)
    shell = Shell(clone)
    started = Step(0, "", "sublet up --agent-settings room.yaml &", ("...", "ready after …", "..."))
    broken = shell.run(started)
    assert not broken, broken
    yield shell
    assert shell.close() == [0]


@pytest.fixture(scope="module")
def shell(page: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One terminal a page."""
    if any(found.step.command.startswith("sublet up") for found in COMMANDS if found.page == page):
        opened = Shell(folder(tmp_path_factory.mktemp("own") / "clone"))
    else:
        host = request.getfixturevalue("at_home")
        opened = Shell(host.directory, host.home)
        opened.run(Step(0, "", "export KUBECONFIG=~/.sublet/kubeconfig"))
    yield opened
    assert set(opened.close()) <= {0}


@pytest.mark.parametrize(
    ("page", "command"),
    [pytest.param(found.page, found, id=found.id) for found in COMMANDS],
    scope="module",
)
def test_a_command_does_what_the_page_promises(shell: Shell, page: str, command: Command) -> None:
    broken = shell.run(command.step)
    assert not broken, f"{page}, {command.step.heading}: $ {command.step.command}\n{broken}"
    if command.step.command.startswith(_OURS):
        assert untidy(shell.printed) == []
