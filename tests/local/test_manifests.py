"""Documents of deploy/ reach an API server as `kubectl apply --server-side` would send them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from local import manifests
from model.fault import KubernetesFault
from tests.kube.conftest import Answer, ScriptedServer, says

ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n"}}
KINDS = {
    "resources": [
        {"kind": "ServiceAccount", "name": "serviceaccounts/token"},
        {"kind": "ServiceAccount", "name": "serviceaccounts"},
    ]
}
DEFINITION = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x.y"}}
ESTABLISHED = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
NEW = {"status": {"conditions": None}}


def sent(folder: Path, documents: list[dict[str, Any]], *answers: Answer) -> list[tuple[str, str]]:
    async def run() -> list[tuple[str, str]]:
        server = ScriptedServer(folder)
        client = await server.start()
        server.answers = list(answers)
        try:
            await manifests.apply(client, documents)
        finally:
            await client.close()
            await server.stop()
        assert all(query.get("fieldManager") for method, _, query, _ in server.requests if method == "PATCH")
        return [(method, path) for method, path, _, _ in server.requests]

    return asyncio.run(run())


def test_an_object_is_made_what_it_says(tmp_path: Path) -> None:
    """By the plural that the server gives its kind, which is asked once; subresources are none."""
    patch = ("PATCH", "/api/v1/namespaces/n/serviceaccounts/a")
    assert sent(tmp_path, [ACCOUNT, ACCOUNT], says(KINDS), says({})) == [("GET", "/api/v1"), patch, patch]


@pytest.mark.parametrize("there", [False, True])
def test_a_definition_is_made_once_and_waited_for(tmp_path: Path, there: bool) -> None:
    """One that is there already stays as it is."""
    all_ = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made = says({"message": "exists"}, 409) if there else says({}, 201)
    asked = sent(tmp_path, [DEFINITION], made, says(NEW), says(ESTABLISHED))
    assert asked == [("POST", all_), ("GET", f"{all_}/x.y"), ("GET", f"{all_}/x.y")]


@pytest.mark.parametrize("document", [ACCOUNT, DEFINITION])
def test_a_refusal_is_not_passed_over(tmp_path: Path, document: dict[str, Any]) -> None:
    answers = [says(KINDS)] if document is ACCOUNT else []
    with pytest.raises(KubernetesFault):
        sent(tmp_path, [document], *answers, says({"message": "no"}, 403))


def test_documents(tmp_path: Path) -> None:
    """Of all files in their order, without the empty ones between two lines of dashes."""
    (tmp_path / "a").write_text("kind: A\n---\n---\nkind: B\n")
    (tmp_path / "b").write_text("kind: C\n")
    assert [each["kind"] for each in manifests.documents([tmp_path / "a", tmp_path / "b"])] == ["A", "B", "C"]


def test_what_people_change_is_made_where_it_is_not_there(tmp_path: Path) -> None:
    """And left alone where it is; anything but that it is there is told."""

    async def run(*answers: Answer) -> None:
        server = ScriptedServer(tmp_path)
        client = await server.start()
        server.answers = list(answers)
        try:
            await manifests.make_missing(client, [ACCOUNT, ACCOUNT])
        finally:
            await client.close()
            await server.stop()
            assert [(method, path) for method, path, _, _ in server.requests[1:]] == [
                ("POST", "/api/v1/namespaces/n/serviceaccounts")
            ] * (len(answers) - 1)

    asyncio.run(run(says(KINDS), says({}, 201), says({"message": "exists"}, 409)))
    with pytest.raises(KubernetesFault, match="no"):
        asyncio.run(run(says(KINDS), says({"message": "no"}, 403)))
