"""The Service that tells the API server where the admission program listens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from embedded.apiserver.admission.webhook_source import ADDRESS_ANNOTATION
from local.admissionservice import publish
from model.fault import KubernetesFault
from tests.kube.conftest import Answer, ScriptedServer, says

ALL = "/api/v1/namespaces/sublet-system/services"


def asked(folder: Path, *answers: Answer) -> list[tuple[str, str, object]]:
    async def run() -> list[tuple[str, str, object]]:
        server = ScriptedServer(folder)
        await (await server.start()).close()
        server.answers = list(answers)
        try:
            await publish(folder / "kubeconfig", "sublet-system", "127.0.0.1:7")
        finally:
            await server.stop()
        return [(method, path, body["metadata"]["annotations"]) for method, path, _, body in server.requests]

    return asyncio.run(run())


WHERE = {ADDRESS_ANNOTATION: "https://127.0.0.1:7"}


def test_a_new_cluster(tmp_path: Path) -> None:
    assert asked(tmp_path, says({}, 201)) == [("POST", ALL, WHERE)]


def test_a_cluster_that_was_up_before(tmp_path: Path) -> None:
    """The program listens elsewhere by then."""
    again = asked(tmp_path, says({"reason": "AlreadyExists"}, 409), says({}))
    assert again == [("POST", ALL, WHERE), ("PATCH", f"{ALL}/sublet-admission", WHERE)]


def test_a_refusal_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(KubernetesFault):
        asked(tmp_path, says({"message": "no"}, 403))
