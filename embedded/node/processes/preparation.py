"""What a container is to run, and on which files: the machine's own, or those of its image where the store has it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from embedded.node.images import capabilities, users
from embedded.node.images import commands as images
from embedded.node.images.commands import Missing, Refused
from embedded.node.images.image_store import Image, ImageStore
from embedded.node.images.users import User
from embedded.node.network import hosts_file
from embedded.node.network.hosts_file import EndpointSliceObject, ServiceObject
from embedded.node.objects import environment
from embedded.node.objects.environment import EnvironmentSources
from embedded.node.objects.pod import CapabilityChange, PodContainer, PodObject, Security
from embedded.node.objects.sources import Sources
from embedded.node.processes import mounting
from embedded.node.processes.container_process import Program
from embedded.node.volumes import container_mounts
from embedded.node.volumes.host_view import HostView, Mount
from embedded.node.volumes.volumes import Places
from embedded.resources import ResourceVector

if TYPE_CHECKING:
    from embedded.node.processes.entry import Room

_RESOLV_CONF = Path("/etc/resolv.conf")
_HOSTS_TARGET = "/etc/hosts"
_HOSTS_FILE = Path(_HOSTS_TARGET)
_HOSTS, _HOSTNAME, _RESOLVER = "hosts", "hostname", "resolv.conf"


class Provision(msgspec.Struct, frozen=True):
    """What containers get besides their own: the image store, and the variables by which they find the API server.

    `services` are those of the cluster as last seen, `slices` who is behind them.
    """

    images: Path | None = None
    api_server: Mapping[str, str] = {}
    services: Callable[[], Iterable[ServiceObject]] = tuple
    slices: Callable[[], Iterable[EndpointSliceObject]] = tuple


class Preparation:
    """`run_dir` holds the pods' directories; `allocatable` is what the node has."""

    def __init__(self, run_dir: Path, host: HostView, provision: Provision, allocatable: ResourceVector) -> None:
        self._run_dir = run_dir
        self._host = host
        self._provision = provision
        self._allocatable = allocatable
        self._store = ImageStore(provision.images)

    def has_image(self, container: PodContainer) -> bool:
        try:
            return self._store.find(container.image) is not None
        except ValueError:
            return True

    def on_images(self, pod: PodObject) -> bool:
        """Whether any of its containers runs on its image's files."""
        return any(self.has_image(each) for each in (*(pod.spec.init_containers or []), *pod.spec.containers))

    def home(self, pod: PodObject) -> Path:
        """The pod's private directory: HOME and, without workingDir, where containers on the machine's files start."""
        return self._run_dir / "pods" / pod.uid

    def places(self, pod: PodObject) -> Places:
        return Places(self._run_dir / "kubelet" / "pods" / pod.uid, self._host if self.on_images(pod) else None)

    def prepare(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> Program | Refused | Missing:
        """Raises OSError where the machine refuses a directory."""
        try:
            image = self._store.find(container.image)
            prepare = self._on_machine if image is None else self._on_image
            return prepare(pod, container, restart_count, sources)
        except environment.Unsupported as error:
            return Refused("CreateContainerConfigError", str(error))
        except ValueError as error:
            return Refused("CreateContainerError", str(error))

    def needs_etc(self, pod: PodObject) -> bool:
        """Whether its containers have an /etc/hosts of their own."""
        return self.on_images(pod) or (bool(pod.spec.subdomain) and mounting.namespaces_possible())

    def write_etc(self, pod: PodObject) -> None:
        """/etc/hosts as it is to be now, and its neighbours once, for containers with an image. Raises OSError."""
        etc = self.places(pod).etc
        etc.mkdir(parents=True, exist_ok=True)
        known = (self._provision.services(), self._provision.slices())
        if not self.on_images(pod):
            hosts_file.write_in_place(etc / _HOSTS, hosts_file.text(pod, *known, before=_machines_hosts()))
            return
        hosts_file.write_in_place(etc / _HOSTS, hosts_file.text(pod, *known))
        hosts_file.write_in_place(etc / _HOSTNAME, environment.hostname(pod) + "\n")
        if _RESOLV_CONF.is_file() and not (etc / _RESOLVER).exists():
            shutil.copyfile(_RESOLV_CONF, etc / _RESOLVER)

    def _around(self, pod: PodObject, container: PodContainer, sources: Sources) -> EnvironmentSources:
        search, home = images.search_path(container.image), str(self.home(pod))
        return EnvironmentSources(search, home, sources, self._allocatable, self._provision.api_server)

    def _on_machine(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> Program | Refused | Missing:
        around = self._around(pod, container, sources)
        declared = environment.declared(pod, container, around)
        mounts = self._mounts(pod, container, restart_count, declared)
        directory = Path(environment.expand(container.working_dir or around.home, declared))
        if not container_mounts.host_path(directory, mounts).is_dir():
            return Missing(f"chdir to cwd ({directory}) set in config.json failed: no such file or directory")
        search = images.find_from(directory, lambda path: container_mounts.host_path(path, mounts))
        variables = environment.given(pod, around) | declared
        command = images.resolve(container, declared, lambda name: search(name, variables["PATH"]))
        if isinstance(command, Refused | Missing):
            return command
        return Program(
            str(directory),
            command,
            variables,
            _plain(mounts),
            str(self.places(pod).stage),
            lambda name: search(name, variables["PATH"]),
        )

    def _mounts(
        self, pod: PodObject, container: PodContainer, restart_count: int, declared: dict[str, str]
    ) -> tuple[Mount, ...]:
        """Empty for a container that finds everything in its place on the machine. Raises Unsupported."""
        places = self.places(pod)
        wanted = container_mounts.mounts(pod, container, places, declared)
        container_mounts.make_sources(pod, container, places, declared)
        if self.needs_etc(pod) and all(each.target != _HOSTS_TARGET for each in wanted):
            wanted = (*wanted, Mount(_HOSTS_TARGET, str(places.etc / _HOSTS), False))
        if all(container_mounts.in_place(each) for each in wanted) and not container_mounts.uses_message(container):
            return ()
        if mounting.namespaces_possible():
            return (*wanted, container_mounts.message_mount(container, places, restart_count))
        refused = container_mounts.unplaceable(wanted, places)
        if refused:
            raise environment.Unsupported(refused)
        return ()

    def _on_image(
        self, pod: PodObject, container: PodContainer, restart_count: int, sources: Sources
    ) -> Program | Refused | Missing:
        image = self._store.find(container.image) or Image(Path("/"))
        if not mounting.images_possible():
            return Refused(
                "CreateContainerError",
                f'image "{container.image}" is in the image store, and running it takes root and an overlay file '
                "system: start the cluster as root, or without --images",
            )
        declared = environment.declared(pod, container, self._around(pod, container, sources))
        user = users.user_of(pod, container, image.config.user, image.accounts())
        mounts = self._mounts_on_image(pod, container, restart_count, declared)
        variables = {"HOSTNAME": environment.hostname(pod), "HOME": user.home, **image.config.variables, **declared}
        directory = container.working_dir or image.config.working_dir or "/"
        search = images.find_from(Path(directory), lambda path: _on_machine(path, mounts, image))
        words = _words(container, image, declared)
        program = search(words[0], variables["PATH"]) if words else None
        if program is None:
            what = f'exec: "{words[0]}": executable file not found in $PATH' if words else "no command specified"
            return Missing(what) if words else Refused("CreateContainerError", what)
        return Program(
            directory,
            [program, *words[1:]],
            variables,
            _plain(mounts),
            str(self.places(pod).stage),
            lambda name: search(name, variables["PATH"]),
            room=self._room(pod, container, image, user, mounts),
        )

    def _mounts_on_image(
        self, pod: PodObject, container: PodContainer, restart_count: int, declared: dict[str, str]
    ) -> tuple[Mount, ...]:
        """Its volumes, and what every such container has where no volume takes its place."""
        places = self.places(pod)
        own = container_mounts.mounts(pod, container, places, declared, self._host)
        container_mounts.make_sources(pod, container, places, declared)
        taken = {each.target for each in own}
        etc = (Mount(f"/etc/{file.name}", str(file), False) for file in sorted(places.etc.iterdir()))
        message = container_mounts.message_mount(container, places, restart_count)
        every = (*self._host.part_of_proc("/proc"), *etc, message)
        return (*(each for each in every if each.target not in taken), *own)

    def _room(
        self, pod: PodObject, container: PodContainer, image: Image, user: User, mounts: tuple[Mount, ...]
    ) -> Room:
        security = container.security_context or Security()
        change, privileged = security.capabilities or CapabilityChange(), bool(security.privileged)
        return {
            "pid": 0,
            "root": str(image.root),
            "stage": str(self.places(pod).stage),
            "mounts": _plain(mounts),
            "read_only": bool(security.read_only_root_filesystem),
            "privileged": privileged,
            "machine_pids": bool(pod.spec.host_pid),
            "hostname": environment.hostname(pod),
            "user": user.uid,
            "group": user.gid,
            "groups": list(user.groups),
            "capabilities": capabilities.granted(change.add or [], change.drop or [], privileged=privileged),
            "no_new_privileges": security.allow_privilege_escalation is False,
        }


def _machines_hosts() -> list[str]:
    """Lines of the machine's own file; none where it has none."""
    return _HOSTS_FILE.read_text(errors="replace").splitlines() if _HOSTS_FILE.is_file() else []


def _words(container: PodContainer, image: Image, declared: Mapping[str, str]) -> list[str]:
    """As the CRI does: a command replaces the image's whole, arguments only its Cmd."""
    arguments = environment.expand_all(container.args or [], declared)
    if container.command:
        return environment.expand_all(container.command, declared) + arguments
    return [*(image.config.entrypoint or []), *(arguments or image.config.cmd or [])]


def _on_machine(path: Path, mounts: tuple[Mount, ...], image: Image) -> Path:
    found = container_mounts.host_path(path, mounts)
    return image.inside(path) if found == path else found


def _plain(mounts: tuple[Mount, ...]) -> list[tuple[str, str, bool]]:
    return [(each.target, each.source, each.read_only) for each in mounts]
