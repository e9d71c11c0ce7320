"""The command lines of the embedded cluster: any port at first, the same ports after a restart, secrets in files."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from embedded.apiserver.authentication.token_file import TokenFile
from embedded.node.machine.share import Claim
from embedded.node.pods.pressure import Signal, parse_thresholds
from embedded.node.settings import Kernel
from local.accounts import write_kubeconfigs, write_secrets
from local.choices import Choices
from local.probing import ProbeAddress
from local.programs import (
    Program,
    bootstrap_files,
    embedded_programs,
    eviction_thresholds,
    static_programs,
    stop_order,
    write_scheduler_settings,
)
from local.rundir import RunDirectory
from local.staticprograms import ProgramHistory, ProgramRun
from model.fault import ConfigurationFault
from scheduler import settings

BOUND = {
    "apiserver": {"address": "127.0.0.1", "port": 6443},
    "node": {
        "node": "n",
        "cgroup_root": "/sys/fs/cgroup",
        "kubepods": "/sublet-abc/kubepods",
        "log_address": "127.0.0.1",
        "log_port": 10250,
    },
    "scheduler": {"link": "127.0.0.1:1", "grpc": "127.0.0.1:2", "http": "127.0.0.1:3"},
    "admission": {"reviews": "127.0.0.1:6", "http": "127.0.0.1:7"},
    "agent": {"grpc": "127.0.0.1:4", "http": "127.0.0.1:5", "socket": "/s", "probes": "/p"},
}
BEFORE = {
    "apiserver": {},
    "node": {"apiserver": BOUND["apiserver"]},
    "scheduler": {name: BOUND[name] for name in ("apiserver", "node")},
    "admission": {name: BOUND[name] for name in ("apiserver", "node", "scheduler")},
    "agent": {name: BOUND[name] for name in ("apiserver", "node", "scheduler", "admission")},
}
CHOICES = Choices("n", "abc")
DEPLOY = Path(__file__).parents[2] / "deploy"


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def programs(run: RunDirectory, choices: Choices = CHOICES) -> dict[str, Program]:
    return {program.name: program for program in embedded_programs(run, choices)}


def bound_nodes(count: int) -> dict[str, dict[str, str]]:
    found = {f"node-{n}": {**BOUND["node"], "proc": f"/view-{n}/proc"} for n in range(1, count + 1)}
    return {**BOUND, **found}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("program", "flag", "again"),
    [
        ("apiserver", "--listen", "127.0.0.1:6443"),
        ("scheduler", "--link-listen", "127.0.0.1:1"),
        ("scheduler", "--grpc-listen", "127.0.0.1:2"),
        ("scheduler", "--http-listen", "127.0.0.1:3"),
        ("agent", "--grpc-listen", "127.0.0.1:4"),
        ("agent", "--http-listen", "127.0.0.1:5"),
    ],
)
def test_a_restart_listens_where_the_first_start_did(tmp_path: Path, program: str, flag: str, again: str) -> None:
    """Any free loopback port at first; afterwards what the ready file told."""
    run = RunDirectory(tmp_path)
    assert option(programs(run)[program].argv(BEFORE[program]), flag) == "127.0.0.1:0"
    assert option(programs(run)[program].argv(BOUND), flag) == again


def test_every_program_can_be_asked_whether_it_is_alive(tmp_path: Path) -> None:
    """Where its ready file says, whichever programs a cluster has."""
    told = {**BOUND, "proxy": {"http": "127.0.0.1:8"}, "simnodes": {"port": 9}}
    for choices in (CHOICES, Choices("n", "abc", bare=True), Choices("n", "abc", simulated_nodes=3)):
        for program in programs(RunDirectory(tmp_path), choices).values():
            assert program.door is not None
            door = program.door(told[program.name])
            if program.name == "agent":
                assert door == ProbeAddress(socket="/p")
            else:
                assert door.port > 0 and door.tls == (program.name in ("apiserver", "node", "simnodes"))


def test_the_agent_works_below_the_nodes_cgroup_and_calls_the_schedulers_link(tmp_path: Path) -> None:
    """Both come from what the programs before it reported."""
    argv = programs(RunDirectory(tmp_path))["agent"].argv(BEFORE["agent"])
    assert option(argv, "--kubepods") == "/sublet-abc/kubepods"
    assert option(argv, "--scheduler") == "127.0.0.1:1"


def test_several_nodes_have_nothing_in_common(tmp_path: Path) -> None:
    """Each program its own files, names and identity; the agent sees what its node shows of the machine."""
    choices = Choices("n", "abc", process_nodes=2, claim=Claim("4", "16Gi"), kernel=Kernel.SIMULATED)
    found = programs(RunDirectory(tmp_path), choices)
    assert list(found) == ["apiserver", "node-1", "node-2", "scheduler", "admission", "agent-1", "agent-2"]
    nodes = [found[f"node-{n}"].argv(BOUND) for n in (1, 2)]
    agents = [found[f"agent-{n}"].argv(bound_nodes(2)) for n in (1, 2)]
    assert [option(argv, "--share") for argv in nodes] == ["1/2", "2/2"]
    assert {option(argv, "--node-cpu") for argv in nodes} == {"4"}
    assert [option(argv, "--proc") for argv in agents] == ["/view-1/proc", "/view-2/proc"]
    own = ("--node-name", "--ready-file", "--kubeconfig")
    for argv, flags in (
        (nodes, (*own, "--id", "--run-dir", "--cgroup-root")),
        (agents, ("--node-name", "--state-file", "--socket", "--heartbeat", "--prediction-file", "--token-file")),
    ):
        assert [flag for flag in flags if option(argv[0], flag) == option(argv[1], flag)] == []


def test_on_an_api_server_of_somebody_else(tmp_path: Path) -> None:
    """None is started; nodes answer its clients, Services have addresses, and its scheduler keeps its own pods."""
    choices = Choices("n", "abc", join=Path("admin.kubeconfig"))
    with RunDirectory(tmp_path / "run") as run:
        found = programs(run, choices)
        write_scheduler_settings(run, choices)
        served = settings.load(run.scheduler_settings).scheduler_names
    assert list(found) == ["node", "proxy", "scheduler", "admission", "agent"]
    assert list(programs(run, Choices("n", "abc", join=Path("x"), bare=True))) == ["node", "proxy"]
    assert option(found["node"].argv(BEFORE["node"]), "--client-ca") == str(run.keys / "client-ca.crt")
    assert "--routed" in found["proxy"].argv(BEFORE["node"]) and "default-scheduler" not in served
    assert option(found["admission"].argv(BEFORE["admission"]), "--listen") == "198.18.0.1:0"


def test_on_a_real_api_server_of_its_own(tmp_path: Path) -> None:
    """As on somebody else's, but for the scheduler: there is no other, and it takes everybody's pods."""
    choices = Choices("n", "abc", apiserver=Path("/bin"))
    with RunDirectory(tmp_path / "run") as run:
        found = programs(run, choices)
        write_scheduler_settings(run, choices)
        served = settings.load(run.scheduler_settings).served
    assert list(found) == ["node", "proxy", "scheduler", "admission", "agent"]
    assert list(programs(run, Choices("n", "abc", apiserver=Path("x"), bare=True))) == ["node", "proxy", "scheduler"]
    assert "--client-ca" in found["node"].argv(BEFORE["node"]) and "default-scheduler" in served


@pytest.mark.parametrize(("disk_gib", "disk_left_mib"), [(1, 10), (10, 102), (100, 1024), (4000, 1024)])
def test_a_nearly_full_disk_evicts_nothing(tmp_path: Path, disk_gib: int, disk_left_mib: int) -> None:
    """The smaller of 1 % and 1 GiB is enough; memory as the kubelet has it."""
    found = {each.signal: each for each in parse_thresholds(eviction_thresholds(disk_gib << 30))}
    assert found[Signal.DISK].of(disk_gib << 30) >> 20 == disk_left_mib
    assert found[Signal.MEMORY].of(1 << 40) == 100 << 20
    argv = programs(RunDirectory(tmp_path))["node"].argv(BEFORE["node"])
    assert parse_thresholds(option(argv, "--eviction-hard"))


def test_simulated_nodes_have_what_is_chosen(tmp_path: Path) -> None:
    """Each resource and each label as their program reads them."""
    chosen = Choices(
        "n",
        "abc",
        simulated_nodes=2,
        simulated_resources=("cpu=96", "nvidia.com/gpu=8"),
        simulated_labels=("pool=a,b",),
    )
    argv = programs(RunDirectory(tmp_path), chosen)["simnodes"].argv(BOUND)
    words = " ".join(argv)
    assert "--resource cpu=96 --resource nvidia.com/gpu=8 --label pool=a,b" in words
    assert option(argv, "--count") == "2"


def test_who_decides_stops_first(tmp_path: Path) -> None:
    """And the API server last, since all others speak with it."""
    choices = Choices("n", "abc", process_nodes=2, simulated_nodes=3)
    order = stop_order(embedded_programs(RunDirectory(tmp_path), choices))
    assert order == ("scheduler", "agent-1", "agent-2", "simnodes", "admission", "node-1", "node-2", "apiserver")


@pytest.mark.parametrize("state", [None, Path("state")])
def test_the_api_server_may_begin_again_with_a_state_directory_only(tmp_path: Path, state: Path | None) -> None:
    """On the address it was given, with the port it had."""
    choices = Choices("n", "abc", state_dir=state, listen="0.0.0.0:0")
    server = programs(RunDirectory(tmp_path), choices)["apiserver"]
    assert server.restart is (state is not None)
    assert option(server.argv(BOUND), "--listen") == "0.0.0.0:6443"
    assert ("--state-dir" in server.argv(BOUND)) is (state is not None)


def test_pods_that_name_no_scheduler_are_scheduled(tmp_path: Path) -> None:
    """The scheduler reads its settings and serves them, as kube-scheduler would: S37."""
    with RunDirectory(tmp_path / "run") as run:
        write_scheduler_settings(run, CHOICES)
        read = settings.load(Path(option(programs(run)["scheduler"].argv(BOUND), "--settings")))
    assert "default-scheduler" in read.served and "koord-scheduler" in read.served
    assert read.plain == {"default-scheduler"}


def test_sublets_programs_are_shown_on_nodes(tmp_path: Path) -> None:
    """Each agent on its own node, what is one for the whole cluster on the first; none where no node runs processes."""
    two, run = Choices("n", "abc", process_nodes=2), RunDirectory(tmp_path)
    assert {name: each.shown_on for name, each in programs(run, two).items() if each.shown_on} == {
        "scheduler": "n-1",
        "admission": "n-1",
        "agent-1": "n-1",
        "agent-2": "n-2",
    }
    assert not any(each.shown_on for each in programs(run, Choices("n", "1", bare=True)).values())
    known = programs(run, two)
    lives = {name: ProgramHistory(ProgramRun(7, 1.0)) for name in ("scheduler", "agent-2")}
    bound = {"scheduler": {"http": "127.0.0.1:9"}, "agent-2": {"probes": "/run/x"}}
    shown = static_programs(run, list(known.values()), bound, lives)
    assert [(each.name, each.node, each.port, each.socket) for each in shown] == [
        ("scheduler", "n-1", 9, ""),
        ("agent", "n-2", 0, "/run/x"),
    ]


def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    """Everyone on the machine can read command lines; tokens and keys are in files of mode 0600."""
    with RunDirectory(tmp_path / "run") as run:
        tokens = write_secrets(run, CHOICES)
        write_kubeconfigs(run, "127.0.0.1:6443", tokens)
        lines = " ".join(word for program in programs(run).values() for word in program.argv(BOUND))
        secrets = [*tokens.values(), (run.keys / "kubelet-token").read_text()]
        assert not any(secret in lines for secret in secrets)
        for path in (*run.keys.iterdir(), run.kubeconfig):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_every_program_has_its_own_identity(tmp_path: Path) -> None:
    """A token each, and the groups that rights go by; the administrator's kubeconfig is called `sublet` throughout."""
    with RunDirectory(tmp_path / "run") as run:
        tokens = write_secrets(run, CHOICES)
        write_kubeconfigs(run, "127.0.0.1:6443", tokens)
        users = TokenFile.read(run.keys / "users")
        known = {name: users.user_of(token.encode()) for name, token in tokens.items()}
        config = yaml.safe_load(run.kubeconfig.read_text())
    assert len(set(tokens.values())) == 4
    groups = {name: user.groups for name, user in known.items() if user}
    assert "system:masters" in groups["admin"] and "system:nodes" in groups["node"]
    for program in ("scheduler", "admission"):
        assert known[program].name == f"system:serviceaccount:sublet-system:sublet-{program}"
        assert "system:serviceaccounts:sublet-system" in groups[program] and "system:masters" not in groups[program]
    assert config["current-context"] == config["clusters"][0]["name"] == config["users"][0]["name"] == "sublet"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"


def test_bootstrap_names_manifests_and_not_the_kustomization() -> None:
    """The API server applies Kubernetes objects only; rights come with the definitions, programs do not."""
    names = {path.relative_to(DEPLOY).as_posix() for path in bootstrap_files()}
    assert {"daemonset/rbac.yaml", "daemonset/policy.yaml", "admission/webhooks.yaml"} <= names
    assert any(name.startswith("crds/") for name in names)
    assert not any("kustomization" in name or name.endswith("agent.yaml") for name in names)


def test_a_bare_cluster_has_nothing_of_sublet(tmp_path: Path) -> None:
    """Its scheduler stands in for kube-scheduler and for nobody else."""
    bare = Choices("n", "1", bare=True)
    with RunDirectory(tmp_path / "run") as run:
        write_scheduler_settings(run, bare)
        found = programs(run, bare)
        read = settings.load(Path(option(found["scheduler"].argv(BOUND), "--settings")))
        assert not any(word.startswith("--bootstrap") for word in found["apiserver"].argv(BOUND))
    assert set(found) == {"apiserver", "node", "proxy", "scheduler"}
    assert read.served == ("default-scheduler",) and not read.node_objects and not read.withdraw.enabled


def test_what_the_user_says_of_the_scheduler(tmp_path: Path) -> None:
    """Comes first, field by field; all else stays as a cluster of one machine needs it."""
    file = tmp_path / "scheduler.yaml"
    file.write_text("ageing: {shortest_wait_seconds: 5}\nwithdraw: {enabled: false}\n")
    with RunDirectory(tmp_path / "run") as run:
        write_scheduler_settings(run, Choices("n", "1", scheduler_settings=file))
        read = settings.load(run.scheduler_settings)
        assert read.ageing.shortest_wait_seconds == 5 and not read.withdraw.enabled
        assert read.lease.namespace == "sublet-system" and "default-scheduler" in read.served
        write_scheduler_settings(run, CHOICES)
        assert read.withdraw.after_seconds == settings.load(run.scheduler_settings).withdraw.after_seconds
        file.write_text("ageing: {shortest_wait_seconds: -1}\n")
        with pytest.raises(ConfigurationFault, match="shortest_wait_seconds"):
            write_scheduler_settings(run, Choices("n", "1", scheduler_settings=file))
    with pytest.raises(ConfigurationFault, match="leave out --scheduler-settings"):
        Choices("n", "1", bare=True, scheduler_settings=file)


def test_the_folder_of_the_start_is_not_imported(tmp_path: Path) -> None:
    """Root starts a cluster wherever it stands, in a folder of somebody else's, too: no module comes from there."""
    folder = tmp_path / "somebody-else's"
    folder.mkdir()
    for name in ("local", "scheduler", "admission", "agent", "structlog", "msgspec", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    for name, program in programs(RunDirectory(tmp_path)).items():
        interpreter, *flags, module = program.argv(BOUND)[:4]
        done = subprocess.run(
            [interpreter, *flags, module, "--help"], cwd=folder, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0 and "--ready-file" in done.stdout, (name, done)
