"""A run directory is its owner's alone, has one holder, and forgets a run but for its logs."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from embedded.cgroups.ownership import boot_id, this_process
from embedded.fault import ConfigurationFault as NotOwn
from embedded.node.processes import mount_namespace
from local.rundir import Endpoints, NodeEndpoints, RunDirectory, read_endpoints
from model.fault import ConfigurationFault

ENDPOINTS = Endpoints(id="abc123", directory="/x", kubeconfig="/x/kubeconfig", node="n")
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")


def killed(path: Path, **told: Any) -> RunDirectory:
    """A run that ended as `kill -9` ends it."""
    run = RunDirectory(path).__enter__()
    run.publish(msgspec.structs.replace(ENDPOINTS, directory=str(path), boot_id=boot_id(), **told))
    assert run._lock is not None
    run._lock.close()  # as the kernel does when the process is killed
    return run


def test_a_new_directory_is_closed_to_others(tmp_path: Path) -> None:
    """Mode 0700, also for what lies in it."""
    with RunDirectory(tmp_path / "run") as run:
        for directory in (run.path, run.keys, run.logs):
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_second_holder_is_refused_in_one_line(tmp_path: Path) -> None:
    """Also from another process; once the first has left, it may."""
    code = "import sys; from pathlib import Path; from local.rundir import RunDirectory\n"
    code += "with RunDirectory(Path(sys.argv[1])): pass"
    argv = [sys.executable, "-c", code, str(tmp_path / "run")]
    with RunDirectory(tmp_path / "run"):
        with pytest.raises(ConfigurationFault, match="another `sublet up` is running here"):
            RunDirectory(tmp_path / "run").__enter__()
        assert subprocess.run(argv, capture_output=True).returncode != 0
    assert subprocess.run(argv, capture_output=True).returncode == 0


def test_leaving_keeps_logs_and_strangers_and_nothing_else(tmp_path: Path) -> None:
    """Keys, kubeconfig and endpoints go; files that are not ours stay."""
    with RunDirectory(tmp_path / "run") as run:
        run.publish(ENDPOINTS)
        run.kubeconfig.write_text("secret")
        run.log_of("agent").write_text("a line")
        (run.path / "notes").write_text("a person's")
        (run.path / "prediction-1.json").write_text("what an agent learned")
        (run.path / "agent-1.lock").write_text("")
    left = sorted(entry.name for entry in run.path.iterdir())
    assert left == [".sublet-run", "lock", "logs", "notes", "prediction-1.json"]


def logs_of(path: Path) -> dict[str, str]:
    return {log.parent.name: log.read_text() for log in sorted(path.glob("logs*/agent.log"))}


@pytest.mark.parametrize("ends", ["orderly", "killed"])
def test_the_logs_of_the_last_three_runs_are_kept(tmp_path: Path, ends: str) -> None:
    """However they ended: what a run that crashed said last is looked for after the next start."""
    path = tmp_path / "run"
    for number in range(6):
        run = killed(path)
        run.forget_previous()
        run.log_of("agent").write_text(f"run {number}")
        if ends == "orderly":
            run.__exit__(None, None, None)
    assert logs_of(path) == {"logs": "run 5", "logs.1": "run 4", "logs.2": "run 3", "logs.3": "run 2"}


def test_starts_that_say_nothing_push_out_no_logs(tmp_path: Path) -> None:
    """One that fails before its first program, again and again."""
    with RunDirectory(tmp_path / "run") as run:
        run.log_of("agent").write_text("the crash")
    for _ in range(5):
        with RunDirectory(tmp_path / "run") as run:
            run.log_of("agent").touch()
    assert logs_of(tmp_path / "run") == {"logs": "", "logs.1": "the crash"}


def test_a_run_that_was_killed_is_known_to_the_next(tmp_path: Path) -> None:
    """Its endpoints are read, and forgotten once it has been ended."""
    killed(tmp_path / "run")
    with RunDirectory(tmp_path / "run") as following:
        assert following.previous is not None and following.previous.id == ENDPOINTS.id
        following.forget_previous()
        assert not following.endpoints.exists() and following.keys.exists()


@pytest.mark.parametrize("told", [{"directory": "/elsewhere"}, {"boot_id": "another"}])
def test_what_a_copy_or_an_older_boot_tells_is_nobodys_to_end(tmp_path: Path, told: dict[str, str]) -> None:
    """Its processes are others' by now, or live on in the directory that was copied; so is what a kernel's files name."""
    run = killed(tmp_path / "run")
    run.publish(msgspec.convert({**json.loads(run.endpoints.read_bytes()), **told}, Endpoints))
    run.kernels.mkdir()
    with RunDirectory(tmp_path / "run") as following:
        assert following.previous is None
        assert not following.kernels.exists() and not following.endpoints.exists()


def test_a_run_whose_lock_was_removed_is_left_alone(tmp_path: Path) -> None:
    """Who started it is alive, by id and start time; nothing of it is touched."""
    me = this_process()
    run = killed(tmp_path / "run", up_pid=me.pid, up_ticks=me.started_ticks)
    with pytest.raises(ConfigurationFault, match=f"pid {me.pid} runs here"):
        RunDirectory(tmp_path / "run").__enter__()
    assert run.endpoints.exists() and run.keys.exists()
    killed_later = msgspec.structs.replace(read_endpoints(run.path), up_ticks=me.started_ticks - 1)
    run.publish(killed_later)
    with pytest.raises(ConfigurationFault, match="the last ended uncleanly"):
        read_endpoints(run.path)
    with RunDirectory(tmp_path / "run") as following:
        assert following.previous == killed_later


@pytest.mark.parametrize("mode", [0o700, 0o755])
@pytest.mark.parametrize(
    "name", ["keys/id_rsa", "kubeconfig", "node/code.js", "logs/mine.log", "logs.2/mine.log", "prediction.json"]
)
def test_a_persons_own_files_are_refused_not_replaced(tmp_path: Path, name: str, mode: int) -> None:
    """Whatever they are called; the directory stays as it was."""
    own = tmp_path / "project" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    (tmp_path / "project").chmod(mode)
    with pytest.raises(ConfigurationFault, match="no `sublet up` made it"):
        RunDirectory(tmp_path / "project").__enter__()
    assert own.read_text() == "mine"
    assert stat.S_IMODE((tmp_path / "project").stat().st_mode) == mode
    assert len(list((tmp_path / "project").iterdir())) == 1


def test_a_run_without_a_mark_is_known_by_its_endpoints(tmp_path: Path) -> None:
    """As earlier versions left it."""
    run = killed(tmp_path / "run")
    (run.path / ".sublet-run").unlink()
    with RunDirectory(tmp_path / "run") as following:
        assert following.previous is not None


@pytest.mark.kernel
@needs_root
@pytest.mark.parametrize("name", ["node", "node-3"])
def test_memory_volumes_of_a_killed_node_are_unmounted(tmp_path: Path, name: str) -> None:
    """Of any node there may have been, whatever number of them runs next."""
    run = killed(tmp_path / "run")
    volume = run.path / name / "kubelet" / "pods" / "uid" / "memory"
    volume.mkdir(parents=True)
    mount_namespace.mount("tmpfs", str(volume), "tmpfs", 0, "size=64k")
    with RunDirectory(tmp_path / "run") as following:
        following.forget_previous()
        assert str(volume) not in Path("/proc/self/mountinfo").read_text()
        assert not (run.path / name).exists()


def test_a_directory_that_others_use_is_not_closed_but_refused(tmp_path: Path) -> None:
    """`--dir /tmp` must not change /tmp."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "something").write_text("")
    with pytest.raises(NotOwn, match="others may enter it"):
        RunDirectory(shared).__enter__()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_link_to_a_directory_is_refused(tmp_path: Path) -> None:
    """Whoever owns the link could point it elsewhere between two looks."""
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("run")
    with pytest.raises(NotOwn, match="a symbolic link, or another user's"):
        RunDirectory(tmp_path / "link").__enter__()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Nothing is made where it points."""
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotOwn, match="lock"):
        RunDirectory(tmp_path / "run").__enter__()
    assert not (tmp_path / "elsewhere").exists()


@needs_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """Its owner could swap the keys, however closed it is to others."""
    (tmp_path / "run").mkdir(mode=0o700)
    os.chown(tmp_path / "run", NOBODY, NOBODY)
    with pytest.raises(NotOwn, match="a symbolic link, or another user's"):
        RunDirectory(tmp_path / "run").__enter__()


@needs_root
@pytest.mark.parametrize("name", ["endpoints.json", ".sublet-run"])
def test_what_another_user_left_is_not_believed(tmp_path: Path, name: str) -> None:
    """In a directory that was open to all: neither endpoints nor a mark that are not one's own."""
    run = killed(tmp_path / "run")
    (run.path / {"endpoints.json": ".sublet-run", ".sublet-run": "endpoints.json"}[name]).unlink()
    run.path.chmod(0o777)
    os.chown(run.path / name, NOBODY, NOBODY)
    with pytest.raises(ConfigurationFault, match="no `sublet up` made it"):
        RunDirectory(tmp_path / "run").__enter__()


@pytest.mark.parametrize("id_", ["*", "a*", "", "../x", "abc\n", "ABC"])
def test_an_id_that_is_none_of_ours_is_no_previous_run(tmp_path: Path, id_: str) -> None:
    """Cgroups to be removed are found by it: `*` would be every cluster's."""
    killed(tmp_path / "run", id=id_)
    with RunDirectory(tmp_path / "run") as run:
        assert run.previous is None


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    """Before anything starts, with what to do."""
    with pytest.raises(ConfigurationFault, match="too long for a unix socket"):
        RunDirectory(tmp_path / ("x" * 120)).__enter__()


def test_endpoints_are_read_back_and_their_absence_is_explained(tmp_path: Path) -> None:
    """A directory without a running cluster says how to start one."""
    with pytest.raises(ConfigurationFault, match="no embedded cluster runs here"):
        read_endpoints(tmp_path / "run")
    with RunDirectory(tmp_path / "run") as run:
        run.publish(ENDPOINTS)
        assert read_endpoints(run.path) == ENDPOINTS
        assert stat.S_IMODE(run.endpoints.stat().st_mode) == 0o600


@needs_root
def test_endpoints_of_another_user_are_not_believed(tmp_path: Path) -> None:
    """Root that looks at a user's cluster would run what the kubeconfig named there says (`exec`)."""
    with RunDirectory(tmp_path / "run") as run:
        run.publish(ENDPOINTS)
        os.chown(run.endpoints, NOBODY, NOBODY)
        with pytest.raises(ConfigurationFault, match=rf"is user {NOBODY}'s and not believed \(run this as that user\)"):
            read_endpoints(run.path)


def test_what_a_run_before_this_boot_tells_is_no_running_cluster(tmp_path: Path) -> None:
    """Its process id may be anybody's by now, and so may its addresses."""
    me = this_process()
    run = killed(tmp_path / "run", up_pid=me.pid, up_ticks=me.started_ticks)
    found = read_endpoints(run.path)
    run.publish(msgspec.structs.replace(found, boot_id="another"))
    with pytest.raises(ConfigurationFault, match="no embedded cluster runs here"):
        read_endpoints(run.path)


def test_without_a_process_node_there_is_no_agent() -> None:
    """Nor an empty name; of a simulated node the cluster can be asked."""
    with pytest.raises(ConfigurationFault, match=r"^/x: no process node runs here.* NAME --kubeconfig /x/kubeconfig"):
        msgspec.structs.replace(ENDPOINTS, node="").agent_of()
    with pytest.raises(ConfigurationFault, match=r"^node sim-7: .*explain node sim-7 --kubeconfig /x/kubeconfig"):
        msgspec.structs.replace(ENDPOINTS, node="").agent_of("sim-7")


def test_the_agent_of_a_node() -> None:
    """The first node's unless one is named; a name that nobody has is answered with those there are."""
    nodes = (NodeEndpoints("n-1", agent_grpc="127.0.0.1:1"), NodeEndpoints("n-2", agent_grpc="127.0.0.1:2"))
    endpoints = msgspec.structs.replace(ENDPOINTS, node="n-1", nodes=nodes)
    assert (endpoints.agent_of(), endpoints.agent_of("n-2")) == ("127.0.0.1:1", "127.0.0.1:2")
    with pytest.raises(ConfigurationFault, match="nodes: n-1, n-2"):
        endpoints.agent_of("n-3")


def test_a_simulated_kernels_files_outlive_a_killed_run(tmp_path: Path) -> None:
    """Until what they name has been ended; an orderly end takes them along."""
    killed(tmp_path / "run").kernels.mkdir()
    with RunDirectory(tmp_path / "run") as following:
        assert following.kernels.exists()
    assert not following.kernels.exists()
