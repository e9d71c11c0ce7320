"""The fleet's switch: what its keys mean, and the one error of each that is wrong."""

from __future__ import annotations

import pytest

from kube.dialects.sublet.fleet import Fleet, FleetMode, fleet
from kube.objects import ConfigMap, Metadata
from model.fault import ConfigurationFault


def switch(**data: str) -> ConfigMap:
    return ConfigMap(Metadata(name="sublet-fleet", namespace="sublet-system"), data)


CANARY = {"pool": "batch"}
LENDS: dict[str, tuple[dict[str, str], dict[str, str], bool]] = {
    "nothing said": ({}, {}, False),
    "observe": ({"mode": "observe"}, {}, False),
    "lend": ({"mode": "lend"}, {}, True),
    "a canary lends where the fleet observes": ({"mode": "observe", "canary": "pool=batch"}, CANARY, True),
    "no canary": ({"mode": "observe", "canary": "pool=batch"}, {"pool": "web"}, False),
    "an empty canary names nobody": ({"mode": "observe", "canary": ""}, CANARY, False),
    "blanks do not count": ({"mode": " lend\n"}, {}, True),
    "where all lend a canary changes nothing": ({"mode": "lend", "canary": "pool=batch"}, {}, True),
}


@pytest.mark.parametrize(("data", "labels", "lends"), LENDS.values(), ids=LENDS)
def test_which_nodes_lend(data, labels, lends):
    assert fleet(switch(**data)).lends(labels) is lends


def test_paused_is_apart_from_the_mode():
    assert fleet(switch(mode="lend", paused="True")) == Fleet(FleetMode.LEND, paused=True)


WRONG = {
    "mode": ({"mode": "on"}, "sublet-fleet: mode: is 'on' (write observe or lend)"),
    "paused": ({"paused": "maybe"}, "sublet-fleet: paused: is 'maybe'"),
    "canary": ({"canary": "a=b=c"}, "sublet-fleet: canary: 'a=b=c' is no requirement"),
    "a misspelt key": ({"pause": "true"}, "sublet-fleet: pause: is no key"),
}


@pytest.mark.parametrize(("data", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(data, told):
    with pytest.raises(ConfigurationFault) as caught:
        fleet(switch(**data))
    assert told in str(caught.value)
