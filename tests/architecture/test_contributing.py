"""CONTRIBUTING.md is true: with the edits to the files it names, in a copy of the tree, one more of each is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from embedded.tests.apiserver.conftest import Api
from tests.architecture.additions import ADDITIONS, CLOSURE, DEFINITION, END, Edit

ROOT = Path(__file__).parent.parent.parent
COPIED = (
    "model",
    "view",
    "kube",
    "wire",
    "agent",
    "scheduler",
    "admission",
    "cli",
    "cgroup_fixtures",
    "deploy",
    "docs",
    "tests/kube/dialects/coverage",
)
"""Whatever the programs that prove an addition import or read."""
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
ROWS = dict(re.findall(r"^\| ([\w ]+) \| (.*`.*) \|$", TEXT, re.M))
PAGE = {name: tuple(re.findall(r"`([\w.]+/[\w./]*)`", row)) for name, row in ROWS.items()}
"""What is added → paths in the order of its row; one that ends in a slash leaves the file's name to whoever adds it."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs and what they read, with compiled modules, which stay valid."""
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        # Scenarios that real kernels wrote are large, and no proof reads them.
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*_recorded", "images", "chart"))
    return copy


@pytest.fixture(scope="module")
def served() -> str:
    """What an API server answers that was given the definition, a good object and an empty one."""
    api = Api()
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(DEFINITION))
    api.settle()
    for item in (CLOSURE, {**CLOSURE, "metadata": {"name": "empty"}, "spec": {}}):
        api.post("/apis/sublet.dev/v1alpha1/closures", item)
    return json.dumps(api.get("/apis/sublet.dev/v1alpha1/closures"))


@pytest.fixture
def folder(tmp_path: Path, served: str) -> Path:
    """What a proof is given: a place of its own, with that answer in it."""
    (tmp_path / "served.json").write_text(served)
    return tmp_path


def apply(edit: Edit, tree: Path) -> None:
    """Put the texts where they belong; each place must be there, once."""
    path = tree / edit.file
    text = path.read_text() if path.exists() else ""
    for after, added in edit.texts.items():
        assert after == END or text.count(after) == 1, f"{edit.file} has no such place any more: {after!r}"
        text = text + added if after == END else text.replace(after, after + added)
    path.write_text(text)


def restore(edits: Iterable[Edit], tree: Path) -> None:
    for edit in edits:
        (tree / edit.file).unlink(missing_ok=True)
        if (ROOT / edit.file).exists():
            shutil.copy2(ROOT / edit.file, tree / edit.file)


def proven(name: str, edits: Iterable[Edit], tree: Path, folder: Path) -> str:
    """What is wrong with the tree once it has the edits; empty where the addition works."""
    edits = tuple(edits)
    try:
        for edit in edits:
            apply(edit, tree)
        command = (sys.executable, "-c", ADDITIONS[name].proof, str(folder))
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=100, check=False)
        return done.stderr if done.returncode else ""
    finally:
        restore(edits, tree)


def test_the_page_tells_of_each() -> None:
    assert PAGE.keys() == ADDITIONS.keys()


def wrong_paths(text: str) -> list[str]:
    """Paths and file names in code quotes that are not as in the tree, from its root; a folder's ends in a slash."""
    named = re.findall(r"`(\w[\w.-]*(?:/[\w./-]*|\.(?:py|md|toml|yaml|proto)))`", text)
    return [name for name in named if not ((ROOT / name).is_dir() if name.endswith("/") else (ROOT / name).is_file())]


def test_the_page_names_files_and_folders_that_exist() -> None:
    """By their whole path: a part of one leaves people to search."""
    assert wrong_paths(TEXT) == []
    wrong = "`strategy.py` `agent/core/evict/needs` `agent/core/limit` `docs/none/`"
    assert wrong_paths(f"{wrong} `view/` `pyproject.toml` `make docs` `kubectl.1.NN` `Meter`") == re.findall(
        "`(.*?)`", wrong
    )


@pytest.mark.parametrize("name", ADDITIONS)
def test_the_page_names_the_files_in_their_order(name: str) -> None:
    """Those that are edited here and no other."""
    edited = [edit.file for edit in ADDITIONS[name].edits]
    assert len(PAGE[name]) == len(edited), (PAGE[name], edited)
    for named, file in zip(PAGE[name], edited, strict=True):
        assert file.startswith(named) if named.endswith("/") else file == named


@pytest.mark.parametrize("name", ADDITIONS)
def test_with_these_edits_one_more_is_there(name: str, tree: Path, folder: Path) -> None:
    assert proven(name, ADDITIONS[name].edits, tree, folder) == ""


LEFT_OUT = [(name, left) for name, addition in ADDITIONS.items() for left in addition.edits]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "left"), LEFT_OUT, ids=[f"{name} {left.file}" for name, left in LEFT_OUT])
def test_no_edit_can_be_left_out(name: str, left: Edit, tree: Path, folder: Path) -> None:
    """Else the page would send people to a file in vain."""
    edits = (edit for edit in ADDITIONS[name].edits if edit is not left)
    assert proven(name, edits, tree, folder) != ""
