"""Settings of simulated nodes from their command line, and what each node is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from embedded.node.machine.facts import Machine
from model import quantity
from model.fault import ConfigurationFault

MOST_NODES = 20_000
SIMULATED = "sublet.dev/simulated"
"""Label of every simulated node."""
NODES_A_RACK, RACKS_A_ZONE = 40, 10
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,198}[a-z0-9])?\Z")
_STORAGE_BYTES = 1 << 40


class Pace(msgspec.Struct, frozen=True):
    """How time passes: `factor` seconds of the model in one second; the others are seconds as everybody counts them.

    A container is created for `start`, and a deleted pod ends after `stop`. Use is looked at every `report` (60 as
    the agent does), but sooner after pods came or went, never twice within `rest`; with a look the status is told again
    once it is `heartbeat` old, as an agent renews its word each minute. `lease` is how long a node counts
    as alive after it was heard; a third of that after each renewal the next one follows.
    """

    factor: float = 1.0
    start: float = 1.0
    stop: float = 1.0
    report: float = 60.0
    rest: float = 10.0
    heartbeat: float = 30.0
    lease: float = 900.0


class Simulation(msgspec.Struct, frozen=True):
    """`count` nodes PREFIX-0, PREFIX-1, …, all of one size. `labels` come on top of the usual ones."""

    count: int
    prefix: str = "sim"
    cpu_millis: int = 32_000
    memory_bytes: int = 128 << 30
    labels: Mapping[str, str] = {}
    pace: Pace = Pace()

    def __post_init__(self) -> None:
        if not 0 < self.count <= MOST_NODES:
            raise ConfigurationFault(f"--count {self.count}", "is not possible", f"1 to {MOST_NODES}")
        if not _PREFIX.match(self.prefix):
            raise ConfigurationFault(f"--prefix {self.prefix!r}", "cannot begin a node's name", "use a-z, 0-9, - and .")
        if not 1 <= self.pace.factor <= 10_000:
            raise ConfigurationFault(f"--time-factor {self.pace.factor:g}", "is not possible", "1 to 10000")

    def name(self, index: int) -> str:
        return f"{self.prefix}-{index}"

    def labels_of(self, index: int) -> dict[str, str]:
        """Beside those of every node: where it stands, 40 nodes to a rack and 10 racks to a zone."""
        rack = index // NODES_A_RACK
        return {
            SIMULATED: "true",
            "topology.kubernetes.io/region": "sim",
            "topology.kubernetes.io/zone": f"zone-{rack // RACKS_A_ZONE}",
            "topology.sublet.dev/rack": f"rack-{rack}",
            **self.labels,
        }

    @property
    def machine(self) -> Machine:
        return Machine(
            cpu_millis=self.cpu_millis,
            memory_bytes=self.memory_bytes,
            storage_bytes=_STORAGE_BYTES,
            architecture="amd64",
            kernel="simulated",
            os_image="simulated",
            machine_id="",
            boot_id="",
            software_version="0.0.0",
        )


class Access(msgspec.Struct, frozen=True):
    """The API server, and how it may ask for statistics; without certificate, key and token nobody can."""

    kubeconfig: Path
    tls_cert: Path | None = None
    tls_key: Path | None = None
    kubelet_token_file: Path | None = None
    ready_file: Path | None = None


def amount(flag: str, text: str, *, cpu: bool) -> int:
    """A quantity from the command line in milli-CPU or bytes. Raises ConfigurationFault."""
    try:
        found = quantity.parse_millis(text) if cpu else quantity.parse_units(text)
    except quantity.QuantityError as error:
        raise ConfigurationFault(f"{flag} {text}", str(error)) from error
    if found <= 0:
        raise ConfigurationFault(f"{flag} {text}", "a node needs more than nothing", "such as 32 or 128Gi")
    return found


def parse_labels(text: str) -> dict[str, str]:
    """`a=b,c=d`. Raises ConfigurationFault."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    wrong = next((key + sign for key, sign, _ in pairs if not key or not sign), None)
    if wrong is not None:
        raise ConfigurationFault(f"--labels {text}", f"{wrong!r} is not KEY=VALUE", "such as pool=batch,disk=ssd")
    return {key: value for key, _, value in pairs}
