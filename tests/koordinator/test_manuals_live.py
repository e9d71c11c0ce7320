"""The same documents through kubectl, the embedded API server and the webhooks that deploy/ installs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from admission_processes import KUBECTL, ROOT, AdmissionCluster
from manuals import Manual, Verdict, manuals

pytestmark = pytest.mark.e2e

ASKED = {name: each for name, each in manuals().items() if each.kind != "Node"}
"""A node's words are told by its condition."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdmissionCluster]:
    """With every definition that deploy/ installs, and one replica of admission."""
    found = AdmissionCluster(tmp_path_factory.mktemp("manuals"))
    try:
        known = ("clustercolocationprofiles", "nodeslos", "priorityclasses", "kustomization")
        for file in sorted((ROOT / "deploy/crds").rglob("*.yaml")):
            if file.stem not in known:
                found.apply(yaml.safe_load(file.read_text()))
        found.admission()
        found.until(
            lambda: "resource-qos-config" in " ".join(dry_run(found, ASKED["cpu-qos (core scheduling)"].document)[1])
        )
        yield found
    finally:
        found.close()


def dry_run(cluster: AdmissionCluster, document: dict[str, Any]) -> tuple[bool, list[str]]:
    """Whether it would be let in, and the lines of standard error: warnings, or the refusal."""
    command = [str(KUBECTL), "--kubeconfig", str(cluster.kubeconfig), "create", "--dry-run=server", "-f", "-"]
    done = subprocess.run(command, input=json.dumps(document), capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 0, done.stderr.strip().splitlines()


@pytest.mark.parametrize("manual", ASKED.values(), ids=ASKED)
def test_what_a_person_reads(cluster: AdmissionCluster, manual: Manual) -> None:
    """The verdict and the words, as kubectl prints them; nobody sees a warning of what is done."""
    let_in, told = dry_run(cluster, manual.document)
    assert let_in is (manual.verdict is not Verdict.REFUSED), told
    assert bool(told) is (manual.verdict is not Verdict.DONE), told
    assert let_in is all(line.startswith("Warning: ") for line in told)
    assert [words for words in manual.words if not any(words in line for line in told)] == [], told
