"""deploy/namespace/fleetpolicy.yaml: a switch that agents would not understand is refused where it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.tests.apiserver.conftest import Api
from kube.dialects.sublet.fleet import fleet
from kube.objects import ConfigMap, Metadata
from model.fault import ConfigurationFault

POLICY = Path(__file__).parent.parent.parent / "deploy/namespace/fleetpolicy.yaml"
MAPS = "/api/v1/namespaces/sublet-system/configmaps"
GOOD: tuple[dict[str, str], ...] = (
    {},
    {"mode": "lend"},
    {"mode": "observe", "paused": "true", "canary": ""},
    {"mode": "", "paused": "", "canary": "pool=batch"},
)
BAD = {
    "a key in a hurry": ({"pause": "true"}, "data.pause is no key of the fleet switch"),
    "a word for true": ({"paused": "yes"}, "data.paused: write"),
    "a word for off": ({"mode": "off"}, "data.mode: write observe or lend"),
}


@pytest.fixture(scope="module")
def api() -> Api:
    made = Api()
    made.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sublet-system"}})
    for document, plural in zip(
        yaml.safe_load_all(POLICY.read_text()),
        ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        strict=True,
    ):
        made.post(f"/apis/admissionregistration.k8s.io/v1/{plural}", document)
    made.post(MAPS, config_map({}))
    return made


def config_map(data: dict[str, str], name: str = "sublet-fleet") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def understood(data: dict[str, str]) -> bool:
    try:
        fleet(ConfigMap(Metadata("sublet-fleet", "sublet-system"), data))
    except ConfigurationFault:
        return False
    return True


@pytest.mark.parametrize("data", GOOD, ids=str)
def test_what_agents_understand_is_let_in(api: Api, data: dict[str, str]) -> None:
    assert understood(data)
    assert api.patch(f"{MAPS}/sublet-fleet?dryRun=All", {"data": data})[0] == 200


@pytest.mark.parametrize(("data", "told"), BAD.values(), ids=BAD)
def test_what_they_would_not_is_refused_with_a_sentence(api: Api, data: dict[str, str], told: str) -> None:
    assert not understood(data)
    code, answer = api.patch(f"{MAPS}/sublet-fleet?dryRun=All", {"data": data})
    assert code == 422 and told in answer["message"]


def test_other_config_maps_are_nobodys_business(api: Api) -> None:
    assert api.call("POST", f"{MAPS}?dryRun=All", config_map({"pause": "true"}, "other"))[0] == 201
