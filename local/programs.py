"""The programs of the embedded cluster: their command lines, in the order they start.

Each process node has an agent of its own; where there are several, their names end in the node's number. A bare
cluster has nothing of Sublet but a stand-in for kube-scheduler.

A first start listens on any free port. `bound` holds what each program then reported in its ready file, so that
a restart takes the same ports and nobody has to look for it again.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from embedded.node.network.addresses import node_address
from embedded.node.settings import Kernel
from embedded.own_files import write_private
from kube.client import KubeClient
from local import manifests
from local.accounts import NAMESPACE, give_agent_tokens, kubeconfig_of, link_token_of
from local.admissionservice import publish, publish_endpoint
from local.choices import ANY_PORT, Choices, NodeSlot, host_and_port
from local.probing import ProbeAddress
from local.programkind import ProgramKind
from local.rundir import RunDirectory
from local.staticprograms import ProgramHistory, StaticProgram
from scheduler import settings as scheduler_settings
from scheduler.core.scores.policy import KUBE_SCHEDULER, PLAIN_SCORE, PROFILES, SchedulerProfile

Ready = dict[str, Any]
Bound = Mapping[str, Ready]
_DEPLOY = Path(__file__).parent.parent / "deploy"
WEBHOOKS = _DEPLOY / "admission/webhooks.yaml"
_BOOTSTRAP = (
    "namespace/namespace.yaml",
    "namespace/users.yaml",
    "daemonset/rbac.yaml",
    "daemonset/policy.yaml",
    "scheduler/rbac.yaml",
    "scheduler/policy.yaml",
    "admission/rbac.yaml",
    "admission/webhooks.yaml",
    "admission/podpolicy.yaml",
)
"""Of `deploy/` what is no program: rights, the policies of agents and pods, and who is asked when pods are made."""

_SETTINGS = ("koordinator/namespace.yaml", "koordinator/scheduler-config.yaml")


class Program(msgspec.Struct, frozen=True):
    """How one program is started and stopped.

    `argv` makes its command line from what the programs so far reported. `restart` is False where a restart could
    not bring back what the program knew: then its end is the end of the cluster. `prepare` is done before
    each start, `announce` once it is ready. All of one `stage` start together, once those of the stages before
    are ready. `shown_on` is the node whose kubelet shows it as a static pod, empty: none. `door` is where
    it is asked whether it is alive.
    """

    name: str
    argv: Callable[[Bound], list[str]]
    door: Callable[[Ready], ProbeAddress] | None = None
    prepare: Callable[[Bound], Awaitable[None]] | None = None
    announce: Callable[[Bound], Awaitable[None]] | None = None
    stage: int = 0
    ready_bound_seconds: float = 30.0
    stop_bound_seconds: float = 10.0
    restart: bool = True
    shown_on: str = ""


_HERE = "127.0.0.1"
_STAND_IN = SchedulerProfile((KUBE_SCHEDULER,), PLAIN_SCORE, plain=True)
"""For pods that name no scheduler: a cluster has a kube-scheduler, which knows nothing of batch work."""
_STOPPED = (
    ProgramKind.SCHEDULER,
    ProgramKind.AGENT,
    ProgramKind.SIMNODES,
    ProgramKind.ADMISSION,
    ProgramKind.NODE,
    ProgramKind.PROXY,
    ProgramKind.APISERVER,
)
_SILENT_SECONDS = 120
"""An agent says each minute that it is there."""


def write_scheduler_settings(run: RunDirectory, choices: Choices) -> None:
    """Here it stands in for kube-scheduler, too, and nobody wants to wait 15 minutes for a silent agent.

    In a bare cluster it does what kube-scheduler does there, and nothing else. What the user's own file says comes
    first, field by field of each section. Raises ConfigurationFault for a file that is none of settings.
    """
    told: dict[str, Any] = {
        "profiles": (*PROFILES, _STAND_IN),
        "withdraw": {"after_seconds": _SILENT_SECONDS},
        "lease": {"namespace": NAMESPACE},
    }
    if choices.join is not None:
        # Such a cluster has a kube-scheduler of its own.
        del told["profiles"]
    elif choices.bare:
        told = {
            "scheduler_names": (KUBE_SCHEDULER,),
            "profiles": (_STAND_IN,),
            "withdraw": {"enabled": False},
            "node_objects": False,
            "lease": {"name": "kube-scheduler"},
        }
    for name, value in _own_settings(choices.scheduler_settings).items():
        both = isinstance(value, dict) and isinstance(told.get(name), dict)
        told[name] = {**told[name], **value} if both else value
    write_private(run.scheduler_settings, msgspec.json.encode(told))


def _own_settings(path: Path | None) -> dict[str, Any]:
    """What the user's file says and no more: defaults would take the place of what is written here."""
    if path is None:
        return {}
    scheduler_settings.load(path)
    return msgspec.yaml.decode(path.read_bytes()) or {}


def embedded_programs(run: RunDirectory, choices: Choices) -> tuple[Program, ...]:
    """API server; then nodes, service addresses, scheduler and admission; then agents; then simulated nodes."""
    return (
        *([] if choices.routed else [_apiserver_program(run, choices)]),
        *(
            Program(
                f"{ProgramKind.NODE}{slot.suffix}",
                _node_of(run, choices, slot),
                door=lambda ready: ProbeAddress(str(ready["log_address"]), int(ready["log_port"]), tls=True),
                stop_bound_seconds=15.0,
                stage=1,
            )
            for slot in choices.slots
        ),
        *([_proxy_program(run, choices)] if choices.bare or choices.routed else []),
        *([] if choices.bare and choices.join else [_scheduler_program(run, choices)]),
        *([] if choices.bare else _lending_programs(run, choices)),
        *([_simnodes_program(run, choices)] if choices.simulated_nodes else []),
    )


def _apiserver_program(run: RunDirectory, choices: Choices) -> Program:
    # With everything in memory a fresh API server would know nothing of what still runs.
    return Program(
        ProgramKind.APISERVER,
        lambda bound: _apiserver(run, choices, bound),
        door=lambda ready: ProbeAddress(str(ready["address"]), int(ready["port"]), tls=True),
        stop_bound_seconds=3.0,
        restart=choices.state_dir is not None,
    )


def _proxy_program(run: RunDirectory, choices: Choices) -> Program:
    return Program(ProgramKind.PROXY, lambda bound: _proxy(run, choices), door=_health, stage=1)


def _scheduler_program(run: RunDirectory, choices: Choices) -> Program:
    # It posts the Events that still wait.
    argv = lambda bound: _scheduler(run, choices, bound)  # noqa: E731
    shown_on = "" if choices.bare else _first_node(choices)
    return Program(ProgramKind.SCHEDULER, argv, door=_health, stop_bound_seconds=25.0, stage=1, shown_on=shown_on)


def _lending_programs(run: RunDirectory, choices: Choices) -> list[Program]:
    admission = Program(
        ProgramKind.ADMISSION,
        lambda bound: _admission(run, choices, bound),
        door=_health,
        announce=lambda bound: _announce_admission(run, choices, str(bound[ProgramKind.ADMISSION]["reviews"])),
        stage=1,
        shown_on=_first_node(choices),
    )
    return [admission, *(_agent_program(run, choices, slot) for slot in choices.slots)]


async def _announce_admission(run: RunDirectory, choices: Choices, address: str) -> None:
    if not choices.routed:
        await publish(run.kubeconfig, NAMESPACE, address)
        return
    host, port = host_and_port(address)
    await publish_endpoint(run.kubeconfig, NAMESPACE, host, int(port))
    async with await KubeClient.connect(run.kubeconfig, "sublet-up") as client:
        await manifests.apply(client, manifests.documents([WEBHOOKS]))


def _agent_program(run: RunDirectory, choices: Choices, slot: NodeSlot) -> Program:
    return Program(
        f"{ProgramKind.AGENT}{slot.suffix}",
        _agent_of(run, choices, slot),
        # Not the port: another user of this machine may have it.
        door=lambda ready: ProbeAddress(socket=str(ready["probes"])),
        shown_on=slot.name,
        prepare=lambda bound: give_agent_tokens(run, slot, api_address(bound)),
        stage=2,
    )


def _first_node(choices: Choices) -> str:
    """Where the programs of the whole cluster are shown; empty where there is no process node."""
    return next((slot.name for slot in choices.slots), "")


def static_programs(
    run: RunDirectory, programs: Sequence[Program], bound: Bound, lives: Mapping[str, ProgramHistory]
) -> list[StaticProgram]:
    """Those that a node shows, as far as they have begun to serve."""
    found = []
    for program in programs:
        if program.shown_on and program.door is not None and program.name in lives:
            life, door = lives[program.name], program.door(bound[program.name])
            kind, log = ProgramKind.of(program.name), str(run.log_of(program.name))
            asked = (door.host, door.port, door.socket)
            found.append(StaticProgram(kind, program.shown_on, log, life.run, life.previous, life.restarts, *asked))
    return found


def stop_order(programs: Sequence[Program]) -> tuple[str, ...]:
    """Those that decide stop first, while the API server can still hear them; then the nodes end their pods."""
    return tuple(sorted((program.name for program in programs), key=lambda name: _STOPPED.index(ProgramKind.of(name))))


def bootstrap_files(directory: Path = _DEPLOY) -> list[Path]:
    """The definitions, priority classes and rights a cluster starts with, unless it is a bare one."""
    definitions = sorted(path for path in (directory / "crds").glob("*.yaml") if path.name != "kustomization.yaml")
    return [*definitions, *(directory / name for name in _BOOTSTRAP)]


def settings_files(directory: Path = _DEPLOY) -> list[Path]:
    """What people change: made where it is not there yet, and left alone from then on."""
    return [directory / name for name in _SETTINGS]


def _apiserver(run: RunDirectory, choices: Choices, bound: Bound) -> list[str]:
    state = ["--state-dir", str(choices.state_dir.expanduser().absolute())] if choices.state_dir else []
    files = [] if choices.bare else bootstrap_files()
    bootstrap = [argument for path in files for argument in ("--bootstrap", str(path))]
    settings = [] if choices.bare else settings_files()
    bootstrap += [argument for path in settings for argument in ("--bootstrap-once", str(path))]
    audit = ["--audit-log", str(choices.audit_log.expanduser().absolute())] if choices.audit_log else []
    return [
        *_module("embedded.apiserver", run, ProgramKind.APISERVER),
        *("--listen", _api_listen(choices, bound)),
        *_certificate(run, ProgramKind.APISERVER),
        *("--token-file", str(run.keys / "users")),
        *("--kubelet-token-file", str(run.keys / "kubelet-token")),
        *("--root-ca", str(run.keys / "ca.crt")),
        *("--kubelet-ca", str(run.keys / "ca.crt")),
        *state,
        *audit,
        *bootstrap,
    ]


def _node_of(run: RunDirectory, choices: Choices, slot: NodeSlot) -> Callable[[Bound], list[str]]:
    simulated = ["--cgroup-root", str(run.kernels / slot.id)] if choices.kernel is Kernel.SIMULATED else []
    claimed = {"--node-cpu": choices.claim.cpu, "--node-memory": choices.claim.memory}
    return lambda bound: [
        *_module("local.node", run, f"{ProgramKind.NODE}{slot.suffix}"),
        *("--kubeconfig", str(kubeconfig_of(run, f"{ProgramKind.NODE}{slot.suffix}"))),
        *("--node-name", slot.name),
        *("--id", slot.id),
        *("--share", f"{slot.number}/{choices.process_nodes}"),
        *("--run-dir", str(run.path / f"{ProgramKind.NODE}{slot.suffix}")),
        *("--kernel", choices.kernel.value),
        *("--cgroup-driver", choices.cgroup_driver.value),
        *("--static-programs", str(run.static_programs)),
        *("--eviction-hard", eviction_thresholds(shutil.disk_usage(run.path).total)),
        *_certificate(run, ProgramKind.NODE),
        *("--kubelet-token-file", str(run.keys / "kubelet-token")),
        *(["--client-ca", str(run.keys / "client-ca.crt")] if choices.routed else []),
        *simulated,
        *(["--images", str(choices.images.expanduser().absolute())] if choices.images else []),
        *(word for flag, amount in claimed.items() if amount for word in (flag, amount)),
    ]


def eviction_thresholds(disk_bytes: int) -> str:
    """The kubelet's for memory; a little of the disk, since a person's own may be nearly full at all times."""
    return f"memory.available<100Mi,nodefs.available<{'1Gi' if disk_bytes > 100 << 30 else '1%'},nodefs.inodesFree<1%"


def _scheduler(run: RunDirectory, choices: Choices, bound: Bound) -> list[str]:
    account = run.kubeconfig if choices.bare else kubeconfig_of(run, ProgramKind.SCHEDULER)
    return [
        *_module("scheduler", run, ProgramKind.SCHEDULER),
        # Only one runs here, so one that comes back after kill -9 need not wait for its own lease to expire.
        *("--identity", "sublet-up"),
        *("--kubeconfig", str(account)),
        *("--link-listen", _port(bound, ProgramKind.SCHEDULER, "link")),
        *_certificate(run, ProgramKind.SCHEDULER),
        "--token-review",
        *("--grpc-listen", _port(bound, ProgramKind.SCHEDULER, "grpc")),
        *("--http-listen", _port(bound, ProgramKind.SCHEDULER, "http")),
        *("--settings", str(run.scheduler_settings)),
        *("--log-format", "console"),
    ]


def _admission(run: RunDirectory, choices: Choices, bound: Bound) -> list[str]:
    reviews = _port(
        bound, ProgramKind.ADMISSION, "reviews", f"{node_address(1, routed=True)}:0" if choices.routed else ANY_PORT
    )
    return [
        *_module("admission", run, ProgramKind.ADMISSION),
        *("--identity", "sublet-up"),
        *("--kubeconfig", str(kubeconfig_of(run, ProgramKind.ADMISSION))),
        *("--namespace", NAMESPACE),
        *("--listen", reviews),
        *("--http-listen", _port(bound, ProgramKind.ADMISSION, "http")),
        *("--log-format", "console"),
    ]


def _proxy(run: RunDirectory, choices: Choices) -> list[str]:
    routed = ["--routed"] if choices.routed else []
    return [*_module("local.proxy", run, ProgramKind.PROXY), "--kubeconfig", str(run.kubeconfig), *routed]


def _agent_of(run: RunDirectory, choices: Choices, slot: NodeSlot) -> Callable[[Bound], list[str]]:
    name = f"{ProgramKind.AGENT}{slot.suffix}"
    files = {"--settings": choices.agent_settings, "--journal": _journal(choices.agent_journal, slot)}
    # The program runs elsewhere: what a person named is below where they are.
    chosen = [word for flag, path in files.items() if path for word in (flag, str(path.absolute()))]
    return lambda bound: [
        *_module("agent", run, name),
        *("--kubeconfig", str(kubeconfig_of(run, name))),
        *("--node-name", slot.name),
        *_tree(bound[f"{ProgramKind.NODE}{slot.suffix}"]),
        *("--state-file", str(run.agent_file(slot.suffix, "state"))),
        *("--prediction-file", str(run.path / f"prediction{slot.suffix}.json")),
        *("--kubelet-pods", str(run.path / f"{ProgramKind.NODE}{slot.suffix}" / "kubelet" / "pods")),
        *("--socket", str(run.agent_file(slot.suffix, "sock"))),
        *("--heartbeat", str(run.agent_file(slot.suffix, "heartbeat"))),
        *("--grpc-listen", _port(bound, name, "grpc")),
        *("--http-listen", _port(bound, name, "http")),
        *("--scheduler", bound[ProgramKind.SCHEDULER]["link"]),
        *("--scheduler-ca", str(run.keys / "ca.crt")),
        *("--token-file", str(link_token_of(run, slot))),
        *("--log-format", "console"),
        *chosen,
    ]


def _tree(node: Ready) -> list[str]:
    """Where the node's pods are, and what it shows of the machine where it is only a part of it."""
    shown = [word for name in ("proc", "sys") if name in node for word in (f"--{name}", str(node[name]))]
    return ["--cgroup-root", str(node["cgroup_root"]), "--kubepods", str(node["kubepods"]), *shown]


def _journal(file: Path | None, slot: NodeSlot) -> Path | None:
    """Each agent needs one of its own."""
    return file.with_name(f"{file.stem}{slot.suffix}{file.suffix}") if file else None


def _simnodes_program(run: RunDirectory, choices: Choices) -> Program:
    """Every node is one more object to write before all are ready."""
    bound_seconds = 30.0 + choices.simulated_nodes / 20
    return Program(
        ProgramKind.SIMNODES,
        lambda bound: _simnodes(run, choices),
        door=lambda ready: ProbeAddress(_HERE, int(ready["port"]), tls=True),
        stage=3,
        ready_bound_seconds=bound_seconds,
    )


def _simnodes(run: RunDirectory, choices: Choices) -> list[str]:
    trace = ["--trace", str(choices.trace.expanduser().absolute())] if choices.trace else []
    return [
        *_module("local.simnodes", run, ProgramKind.SIMNODES),
        *("--kubeconfig", str(run.kubeconfig)),
        *("--count", str(choices.simulated_nodes)),
        *_certificate(run, ProgramKind.NODE),
        *("--kubelet-token-file", str(run.keys / "kubelet-token")),
        *(word for text in choices.simulated_resources for word in ("--resource", text)),
        *(word for text in choices.simulated_labels for word in ("--label", text)),
        *trace,
    ]


def _health(ready: Ready) -> ProbeAddress:
    """Of a program that serves /healthz in plain text."""
    host, port = host_and_port(str(ready["http"]))
    return ProbeAddress(host, int(port))


def api_address(bound: Bound) -> str:
    """Where this machine's programs reach the API server, once it has reported that."""
    ready = bound[ProgramKind.APISERVER]
    address = str(ready["address"])
    return f"[{address}]:{ready['port']}" if ":" in address else f"{address}:{ready['port']}"


def api_server_at(address: str) -> Ready:
    """What an API server at HOST:PORT would have reported."""
    host, port = host_and_port(address)
    return {"address": host.strip("[]"), "port": int(port)}


def _api_listen(choices: Choices, bound: Bound) -> str:
    """As chosen; the port of the first start from then on."""
    ready = bound.get(ProgramKind.APISERVER)
    return f"{host_and_port(choices.listen)[0]}:{ready['port']}" if ready else choices.listen


def _port(bound: Bound, program: str, key: str, first: str = ANY_PORT) -> str:
    return str(bound.get(program, {}).get(key, first))


def _module(module: str, run: RunDirectory, program: str) -> list[str]:
    # Without -P the folder that the cluster was started in comes first among those that are imported from.
    return [sys.executable, "-P", "-m", module, "--ready-file", str(run.ready_file_of(program))]


def _certificate(run: RunDirectory, server: str) -> list[str]:
    return ["--tls-cert", str(run.keys / f"{server}.crt"), "--tls-key", str(run.keys / f"{server}.key")]
