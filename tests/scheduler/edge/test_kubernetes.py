"""Koordinator's scheduler configuration as a leader reads it when it begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube import objects
from model.fault import KubernetesFault
from scheduler.edge.kubernetes import scheduler_config

PROFILE = """
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: Coscheduling
    args: {enablePreemption: false}
"""


class Server:
    """Answers in turn; one that is a status refuses with it."""

    def __init__(self, *answers: int | str) -> None:
        self.answers = list(answers)

    async def get(self, path: str, type_: Any) -> objects.ConfigMap:
        assert path == "/api/v1/namespaces/koordinator-system/configmaps/koord-scheduler-config"
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            raise KubernetesFault(path, "refused", status=answer)
        return objects.ConfigMap(metadata=objects.Metadata(name="koord-scheduler-config"), data={"config": answer})


def read(server: Server) -> dict[str, str] | None:
    client: Any = server
    found = asyncio.run(scheduler_config(client, retry_seconds=0.0))
    return found.data if found else None


@pytest.mark.parametrize(
    ("answers", "content"),
    [
        ((404,), None),
        ((403,), None),
        ((PROFILE,), {"config": PROFILE}),
        ((503, 0, 429, PROFILE), {"config": PROFILE}),
        ((500, 404), None),
    ],
)
def test_a_server_that_cannot_say_yet_is_asked_again(
    answers: tuple[int | str, ...], content: dict[str, str] | None
) -> None:
    """A takeover falls into the very moment when the server has trouble; that must not end the new leader too."""
    server = Server(*answers)
    assert read(server) == content
    assert server.answers == []
