"""Settings of simulated nodes from their command line, and what each node is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from embedded.node.machine.facts import Machine
from embedded.node.registration import node_object
from model import quantity
from model.fault import ConfigurationFault
from model.resources import CPU, MEMORY

MOST_NODES = 20_000
SIMULATED = "sublet.dev/simulated"
"""Label of every simulated node."""
NODES_A_RACK, RACKS_A_ZONE = 40, 10
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9.-]{0,198}[a-z0-9])?\Z")
_QUALIFIED_NAME = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?\Z")
_NATIVE = (CPU, MEMORY, "ephemeral-storage", "pods")
_LENT_PREFIX = "kubernetes.io/"
"""Of resources that the agent's code computes for each node."""
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
    """`count` nodes PREFIX-0, PREFIX-1, …, all of one size. `labels` come on top of the usual ones.

    `resources` are further amounts of each node in whole units, such as devices; `pools` are label keys with several
    values, which the nodes get in turn.
    """

    count: int
    prefix: str = "sim"
    cpu_millis: int = 32_000
    memory_bytes: int = 128 << 30
    labels: Mapping[str, str] = {}
    pace: Pace = Pace()
    resources: Mapping[str, int] = {}
    pools: Mapping[str, tuple[str, ...]] = {}

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
            **{key: values[index % len(values)] for key, values in self.pools.items()},
        }

    @property
    def amounts(self) -> dict[str, str]:
        """Capacity and allocatable of each node as Kubernetes writes them, without what is lent."""
        own = {name: str(amount) for name, amount in self.resources.items()}
        return {**node_object.amounts(self.machine), **own}

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


def with_resources(simulation: Simulation, texts: Iterable[str]) -> Simulation:
    """The same with `NAME=QUANTITY` of each text; `cpu` and `memory` stand for the nodes' size.

    Raises ConfigurationFault naming the flag.
    """
    found = dict(map(_resource, texts))
    size = {"cpu_millis": found.pop(CPU, None), "memory_bytes": found.pop(MEMORY, None)}
    changed = {name: amount for name, amount in size.items() if amount is not None}
    return msgspec.structs.replace(simulation, **changed, resources={**simulation.resources, **found})


def _resource(text: str) -> tuple[str, int]:
    name, sign, told = text.partition("=")
    where = f"--resource {text}"
    if not sign or not _QUALIFIED_NAME.match(name):
        raise ConfigurationFault(where, "is not NAME=QUANTITY", "such as nvidia.com/gpu=8")
    if name.startswith(_LENT_PREFIX):
        raise ConfigurationFault(where, f"{name} is computed from what the nodes use", "leave it out")
    if "/" not in name and name not in _NATIVE and not name.startswith("hugepages-"):
        fix = f"one of {', '.join(_NATIVE)}, or a name with a domain such as nvidia.com/gpu"
        raise ConfigurationFault(where, "is no resource of a node", fix)
    found = amount("--resource", told, cpu=name == CPU)
    if name != CPU and quantity.parse(told) != found:
        raise ConfigurationFault(where, "is not a whole number", "such as nvidia.com/gpu=8")
    return name, found


def parse_labels(text: str) -> dict[str, str]:
    """`a=b,c=d`. Raises ConfigurationFault."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    wrong = next((key + sign for key, sign, _ in pairs if not key or not sign), None)
    if wrong is not None:
        raise ConfigurationFault(f"--labels {text}", f"{wrong!r} is not KEY=VALUE", "such as pool=batch,disk=ssd")
    return {key: value for key, _, value in pairs}


def parse_pools(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`KEY=VALUE` or `KEY=VALUE,VALUE,…` of each text. Raises ConfigurationFault."""
    return dict(map(_pool, texts))


def _pool(text: str) -> tuple[str, tuple[str, ...]]:
    key, sign, told = text.partition("=")
    values = tuple(told.split(","))
    if not sign or not _QUALIFIED_NAME.match(key) or not all(map(_LABEL_VALUE.match, values)):
        raise ConfigurationFault(f"--label {text}", "is not KEY=VALUE or KEY=VALUE,VALUE,…", "such as pool=a100")
    return key, values
