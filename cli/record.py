"""`sublet record`: a live node's files as a scenario that tests, benches and replays play back."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from agent.core.observe import recording
from agent.core.observe.layout import detect
from agent.core.observe.recording import Scenario, ScenarioContainer, ScenarioPod
from agent.record import NodeFiles, RecordedFolders, RecordPace, record, started
from kube import objects
from kube.dialects.upstream import core_objects
from kube.yamldocuments import yaml_documents
from model.fault import ConfigurationFault
from model.pod.status import PodPhase
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY

# Annotations of other domains are not kept: kubectl's own, for one, holds the whole manifest with its environment.
_DOMAINS = ("koordinator.sh", "volcano.sh", "kueue.x-k8s.io")
# They tell how a static pod's cgroup is named.
_STATIC = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")
_METADATA = ("name", "namespace", "uid", "labels", "creationTimestamp")
_CONTAINERS = ("containers", "initContainers")
_IDS = ("containerStatuses", "initContainerStatuses")
_SPEC = ("nodeName", "priority", "overhead")
_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


def record_node(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the scenario goes; new or empty.")],
    frames: Annotated[int, typer.Option(min=1, max=100, help="How many frames.")] = 8,
    interval: Annotated[float, typer.Option(min=0.01, max=3600.0, help="Seconds from frame to frame.")] = 1.0,
    kubepods: Annotated[str, typer.Option(help="The pods' cgroup below each mount (default: looked for).")] = "",
    cgroup_root: Annotated[Path, typer.Option(help="Where cgroups are mounted.")] = Path("/sys/fs/cgroup"),
    proc: Annotated[Path, typer.Option(help="The node's proc.")] = Path("/proc"),
    sys_root: Annotated[Path, typer.Option("--sys", help="The node's sys.")] = Path("/sys"),
    node_name: Annotated[str, typer.Option(help="The node's name (default: this machine's host name).")] = "",
    about: Annotated[
        str, typer.Option(help="What happens on the node meanwhile, for whoever reads the scenario.")
    ] = "",
    pods: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The node's pods (`kubectl get pods -o json`); kept without their secrets."),
    ] = None,
) -> None:
    """Copy what the agent reads of this node, every few moments, into a folder of frames."""
    _require_empty(directory)
    kept = kept_pods(pods, node_name) if pods else []
    known = [_decoded(pod, pods) for pod in kept]
    runtime = recording.runtime_of((), [s.container_id for pod in known for s in pod.status.container_statuses or []])
    scenario_pods = tuple(_scenario_pod(pod) for pod in known)
    kubepods = kubepods or found_kubepods(cgroup_root)
    node = NodeFiles(RecordedFolders(cgroup_root, proc, sys_root, kubepods))
    scenario = _with_pods(started(node, kubepods, node_name or socket.gethostname(), about), scenario_pods, runtime)
    if kept:
        _write(directory / "pods.json", {"apiVersion": "v1", "kind": "PodList", "items": kept})
    done = record(node, scenario, RecordPace(frames, interval, time.monotonic, time.sleep), directory)
    typer.echo(f"{len(done.frames_seconds)} frames of {done.node.name} in {directory}")


def kept_pods(file: Path, node_name: str) -> list[dict[str, Any]]:
    """The pods in `file`, those of `node_name` where it is given, with only what a recording may hold.

    A pod that has ended is left out: it has no cgroup any more. Raises ConfigurationFault naming the file where it
    cannot be read.
    """
    try:
        text = file.read_text()
        documents = [msgspec.json.decode(text)] if text.lstrip()[:1] == "{" else yaml_documents(text)
        found = [item for document in documents if document for item in document.get("items", [document])]
        pods = [_kept(item) for item in found if item.get("kind", "Pod") == "Pod"]
    except OSError as error:
        raise ConfigurationFault(str(file), error.strerror or str(error)) from error
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise _no_pods(file, error) from error
    live = [pod for pod in pods if pod["status"].get("phase") not in _ENDED]
    return [pod for pod in live if not node_name or pod["spec"].get("nodeName") == node_name]


def found_kubepods(cgroup_root: Path) -> str:
    """The pods' cgroup below each mount, as the agent finds it. Raises KernelFault where there is none, or several."""
    version = 2 if (cgroup_root / "cgroup.controllers").exists() else 1
    tree = cgroup_root if version == 2 else cgroup_root / "cpuacct"
    folders = (path for pattern in ("*", "*/*") for path in tree.glob(pattern) if path.is_dir())
    return detect(str(tree), version, [f"/{path.relative_to(tree)}" for path in folders]).root


def _no_pods(file: Path | None, error: Exception) -> ConfigurationFault:
    return ConfigurationFault(str(file), f"holds no pods: {error}", "write it by `kubectl get pods -o json`")


def _require_empty(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigurationFault(str(directory), "is not an empty directory", "give a new one")


def _write(file: Path, document: dict[str, Any]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    except OSError as error:
        raise ConfigurationFault(str(error.filename or file), error.strerror or str(error)) from error


def _kept(pod: dict[str, Any]) -> dict[str, Any]:
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if _ours(key)}
    containers = {part: [_container(item) for item in spec[part]] for part in _CONTAINERS if spec.get(part)}
    ids = {part: [_chosen(item, ("name", "containerID")) for item in status[part]] for part in _IDS if status.get(part)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _chosen(metadata, _METADATA) | ({"annotations": annotations} if annotations else {}),
        "spec": _chosen(spec, _SPEC) | containers,
        "status": _chosen(status, ("phase", "qosClass")) | ids,
    }


def _ours(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return annotation in _STATIC or any(domain == known or domain.endswith(f".{known}") for known in _DOMAINS)


def _container(source: dict[str, Any]) -> dict[str, Any]:
    return _chosen(source, ("name", "restartPolicy")) | {
        "resources": _chosen(source.get("resources") or {}, ("requests", "limits"))
    }


def _chosen(source: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: source[key] for key in keys if source.get(key) is not None}


def _decoded(pod: dict[str, Any], file: Path | None) -> objects.Pod:
    try:
        return msgspec.convert(pod, objects.Pod, strict=False)
    except msgspec.ValidationError as error:
        raise _no_pods(file, error) from error


def _with_pods(scenario: Scenario, pods: tuple[ScenarioPod, ...], runtime: str) -> Scenario:
    layout = msgspec.structs.replace(scenario.layout, runtime=runtime or scenario.layout.runtime)
    return msgspec.structs.replace(scenario, layout=layout, pods=pods)


def _scenario_pod(source: objects.Pod) -> ScenarioPod:
    pod = core_objects.pod(source)
    return ScenarioPod(
        name=pod.name,
        uid=pod.cgroup_uid or pod.uid,
        kubernetes_qos=pod.status.kubernetes_qos,
        qos=pod.colocation.qos_label,
        cpu_millis=pod.spec.requests[CPU],
        memory_bytes=pod.spec.requests[MEMORY],
        batch_cpu_millis=pod.spec.requests[BATCH_CPU],
        batch_memory_bytes=pod.spec.requests[BATCH_MEMORY],
        containers=tuple(ScenarioContainer(name, id) for name, id in pod.status.container_ids.items()),
    )
