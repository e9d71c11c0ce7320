"""Koordinator's scheduler configuration as a leader reads it when it begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube import objects
from kube.dialects.schedulerconfig import CoschedulingArgs
from model.fault import ConfigurationFault, KubernetesFault
from scheduler.edge.kubernetes import coscheduling

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


def read(server: Server) -> CoschedulingArgs:
    client: Any = server
    return asyncio.run(coscheduling(client, retry_seconds=0.0))


@pytest.mark.parametrize(
    ("answers", "preemption"),
    [
        ((404,), None),
        ((403,), None),
        ((PROFILE,), False),
        ((503, 0, 429, PROFILE), False),
        ((500, 404), None),
    ],
)
def test_a_server_that_cannot_say_yet_is_asked_again(answers: tuple[int | str, ...], preemption: bool | None) -> None:
    """A takeover falls into the very moment when the server has trouble; that must not end the new leader too."""
    server = Server(*answers)
    assert read(server).enable_preemption is preemption
    assert server.answers == []


def test_what_is_wrong_in_it_is_named() -> None:
    """Asking again would not mend it."""
    with pytest.raises(ConfigurationFault, match="enablePreemption"):
        read(Server(PROFILE.replace("false", "perhaps")))
