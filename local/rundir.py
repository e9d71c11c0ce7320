"""The directory of one run of the embedded cluster: who holds it, and where each file of it lies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Annotated

import msgspec

from embedded.cgroups.ownership import boot_id, started_ticks
from embedded.own_files import close_directory, open_own, own_directory, write_private
from local import runfiles
from model.fault import ConfigurationFault

DEFAULT_DIRECTORY = Path("~/.sublet")
# sockaddr_un.sun_path of Linux holds 108 bytes with its closing zero.
_SOCKET_PATH_BYTES = 107


class NodeEndpoints(msgspec.Struct, frozen=True):
    """One process node and the agent that serves it; empty strings for what has not started yet.

    `cgroup_prefix` and `kubepods` are paths below `cgroup_root` (on cgroup v1 below each controller there).
    """

    name: str
    kernel: str = ""
    cgroup_root: str = ""
    cgroup_version: int = 0
    cgroup_prefix: str = ""
    kubepods: str = ""
    agent_grpc: str = ""
    agent_http: str = ""
    agent_socket: str = ""


class Endpoints(msgspec.Struct, frozen=True):
    """Where everything of a running cluster is reached; the content of `endpoints.json`.

    Addresses are HOST:PORT, files are absolute paths; `programs` maps a program's name to its process id,
    `started_ticks` to when that process began since the boot `boot_id`: a later one with the same id is another.
    `up_pid` and `up_ticks` are those of whoever runs it all. `nodes` are all process nodes; `node`, `cgroup_prefix` and
    `agent_…` speak of the first.
    """

    id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]+\Z")]  # cgroups are found by it, so no wildcard may be in it
    directory: str
    kubeconfig: str
    node: str
    api: str = ""
    cgroup_prefix: str = ""
    agent_grpc: str = ""
    agent_http: str = ""
    agent_socket: str = ""
    scheduler_link: str = ""
    scheduler_grpc: str = ""
    scheduler_http: str = ""
    up_pid: int = 0
    up_ticks: int = 0
    boot_id: str = ""
    programs: dict[str, int] = {}
    started_ticks: dict[str, int] = {}
    nodes: tuple[NodeEndpoints, ...] = ()

    def agent_of(self, node: str = "") -> str:
        """The gRPC address of a node's agent, the first node's where none is named; empty before it has started.

        Raises ConfigurationFault for a node that is not there.
        """
        found = [each for each in self.nodes if each.name == (node or self.node)]
        if not found:
            raise self._nobody_serves(node)
        return found[0].agent_grpc

    def _nobody_serves(self, node: str) -> ConfigurationFault:
        where = f"node {node}" if node else self.directory
        what = "no agent of this cluster serves it" if self.nodes else "no process node runs here, so there is no agent"
        names = f"nodes: {', '.join(each.name for each in self.nodes)}; " if self.nodes else ""
        ask = f"sublet explain node {node or 'NAME'} --kubeconfig {self.kubeconfig}"
        return ConfigurationFault(where, what, f"{names}of a simulated node: {ask}")


class RunDirectory:
    """A directory only its owner may enter, held by one live process at a time.

    Opening takes the lock and raises ConfigurationFault when another process holds it, or when the
    directory cannot be used. Leaving gives the lock back and keeps the logs and what the agent learned.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self._lock: IO[str] | None = None
        self.previous: Endpoints | None = None  # of a run that ended without cleaning up

    def __enter__(self) -> RunDirectory:
        self._create()
        self._lock = self._take_lock()
        try:
            self._take_over()
        except BaseException:
            self._lock.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runfiles.forget(self.path, {runfiles.LOGS})
        if self._lock is not None:
            self._lock.close()

    def forget_previous(self) -> None:
        """Remove what tells of the previous run, once that has been ended; its endpoints last."""
        runfiles.forget(self.path, {*_OF_THIS_RUN, runfiles.ENDPOINTS})
        runfiles.forget(self.path, _OF_THIS_RUN)

    @property
    def logs(self) -> Path:
        return self.path / runfiles.LOGS

    @property
    def ready(self) -> Path:
        return self.path / "ready"

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for kubectl."""
        return self.path / "kubeconfig"

    @property
    def endpoints(self) -> Path:
        return endpoints_file(self.path)

    @property
    def scheduler_settings(self) -> Path:
        return self.path / "scheduler.json"

    @property
    def static_programs(self) -> Path:
        """What the nodes show of Sublet's own programs; see staticprograms."""
        return self.path / runfiles.STATIC

    @property
    def kernels(self) -> Path:
        """Where a simulated kernel keeps its files, a directory for each node."""
        return self.path / "kernel"

    @property
    def agent_socket(self) -> Path:
        return self.agent_file("", "sock")

    def agent_file(self, suffix: str, extension: str) -> Path:
        """A file of one agent: `agent.sock`, of the second of several `agent-2.sock`."""
        return self.path / f"agent{suffix}.{extension}"

    def log_of(self, program: str) -> Path:
        return self.logs / f"{program}.log"

    def ready_file_of(self, program: str) -> Path:
        return self.ready / f"{program}.json"

    def publish(self, endpoints: Endpoints) -> None:
        """Replace endpoints.json as a whole, so that a reader never sees half of it."""
        fresh = self.endpoints.with_suffix(".new")
        write_private(fresh, msgspec.json.format(msgspec.json.encode(endpoints), indent=2) + b"\n")
        fresh.replace(self.endpoints)

    def _create(self) -> None:
        try:
            mode = own_directory(self.path, "give --dir a directory of your own")
            runfiles.refuse_strangers(self.path, known=self._recorded() is not None)
            if mode & 0o077:
                fix = "give --dir a new or private directory"
                close_directory(self.path, runfiles.foreign(self.path), "others may enter it", fix)
        except OSError as error:
            raise ConfigurationFault(str(self.path), f"not usable: {error.strerror}", "give --dir DIR") from error
        if len(os.fsencode(self.agent_file("-1", "probe"))) > _SOCKET_PATH_BYTES:
            raise ConfigurationFault(str(self.path), "too long for a unix socket below it", "give a shorter --dir")

    def _take_over(self) -> None:
        """Raises ConfigurationFault where the previous run lives on, its lock removed."""
        found = self._recorded()
        self.previous = found if found and found.boot_id == boot_id() else None
        if self.previous and _lives(self.previous):
            fix = "stop that one, or give this one another --dir"
            raise ConfigurationFault(str(self.path), f"`sublet up` with pid {self.previous.up_pid} runs here", fix)
        runfiles.mark(self.path)
        runfiles.put_away_logs(self.path)
        # By these a previous run is ended, which may still use its nodes' directories.
        told = {"kernel", runfiles.ENDPOINTS, *runfiles.NODES}
        runfiles.forget(self.path, told if self.previous else ())
        for directory in (self.logs, self.ready, self.keys):
            directory.mkdir(mode=0o700, exist_ok=True)

    def _take_lock(self) -> IO[str]:
        try:
            lock = os.fdopen(open_own(self.path / runfiles.LOCK, os.O_WRONLY | os.O_CREAT), "a")
        except OSError as error:
            raise ConfigurationFault(
                str(self.path / runfiles.LOCK), f"not usable: {error.strerror}", "remove it"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            fix = "stop that one, or give this one another --dir"
            raise ConfigurationFault(str(self.path), "another `sublet up` is running here", fix) from error
        return lock

    def _recorded(self) -> Endpoints | None:
        """What a run of this very directory left; a copied directory tells of a run elsewhere, which may be alive."""
        try:
            # Whoever else could write here before the directory was closed may have left one.
            if self.endpoints.lstat().st_uid != os.geteuid():
                return None
            found = msgspec.json.decode(self.endpoints.read_bytes(), type=Endpoints)
        except (OSError, msgspec.MsgspecError):
            return None
        return found if os.path.realpath(found.directory) == os.path.realpath(self.path) else None


_OF_THIS_RUN = frozenset({runfiles.LOGS, "ready", "keys"})


def _lives(run: Endpoints) -> bool:
    return run.up_pid > 0 and started_ticks(run.up_pid) == run.up_ticks


def endpoints_file(directory: Path) -> Path:
    return directory.expanduser().absolute() / runfiles.ENDPOINTS


def read_endpoints(directory: Path) -> Endpoints:
    """The endpoints of the cluster that runs in `directory`. Raises ConfigurationFault where none does, and where
    another user wrote them: the kubeconfig that they name may run any command.
    """
    path = endpoints_file(directory)
    fix = "start it with `sublet up`, or give --dir, --agent or --scheduler"
    try:
        # Without waiting: in a folder of others it may be a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            owner, content = os.fstat(file.fileno()).st_uid, file.read()
        if owner != os.geteuid():
            raise ConfigurationFault(str(path), f"is user {owner}'s and not believed", "run this as that user")
        found = msgspec.json.decode(content, type=Endpoints)
    except FileNotFoundError as error:
        raise ConfigurationFault(str(path.parent), "no embedded cluster runs here", fix) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigurationFault(str(path), f"unreadable: {error}", fix) from error
    # Of a run that `kill -9` ended the file stays, and its addresses may be another program's by now.
    if found.up_pid and not (found.boot_id == boot_id() and _lives(found)):
        raise ConfigurationFault(str(path.parent), "no embedded cluster runs here; the last ended uncleanly", fix)
    return found
