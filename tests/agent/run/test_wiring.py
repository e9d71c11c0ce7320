"""The whole agent on a made node, before an API server that knows nothing: what may fail, and what ends the start."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from agent import probe
from agent.core.limit.brake import BrakePlan
from agent.core.observe.observation import Knob
from agent.edge.nodelock import NodeLock
from agent.files.statefile import StateFile, originals_in
from agent.options import AgentOptions
from agent.run.heartbeat_guard import Heartbeat, last_beat
from agent.run.wiring import run
from model.decision import Term
from model.fault import ConfigurationFault
from tests.agent.playing import Scenario
from tests.kube.conftest import ScriptedServer, says, streams

PROBE = (sys.executable, "-IS", str(Path(probe.__file__)))


async def answers(request: web.Request) -> web.StreamResponse:
    """Every collection is empty and stays so; every write is accepted."""
    listed = says({"metadata": {"resourceVersion": "1"}, "items": []})
    return await (streams(hold=True) if request.query.get("watch") else listed)(request)


def options(folder: Path, build: Any, **more: Any) -> AgentOptions:
    node = Scenario("v1_surge", folder, build)
    assert node.originals is not None
    node.originals.close()
    fields = {
        "node_name": "n",
        "state_file": folder / "own" / "agent.json",
        "kubeconfig": folder / "kubeconfig",
        "cgroup_root": node.cgroups,
        "proc": folder / "proc",
        "sys": folder / "sys",
        "cpu_manager_state": folder / "none",
        "socket": folder / "run" / "agent.sock",
        "heartbeat": folder / "run" / "agent.heartbeat",
        "grpc_listen": "127.0.0.1:0",
        "http_listen": "127.0.0.1:0",
        "ready_file": folder / "ready.json",
    }
    return AgentOptions(**{**fields, **more})


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(folder: Path, chosen: AgentOptions) -> Any:
    server = ScriptedServer(folder)
    server.answers = [answers]
    client = await server.start()
    agent = asyncio.create_task(run(chosen))
    try:
        yield agent
    finally:
        agent.cancel()
        await asyncio.gather(agent, return_exceptions=True)
        await client.close()
        await server.stop()


def test_what_the_agent_can_do_without_ends_nothing(tmp_path: Path, build: Any) -> None:
    """A ready file that cannot be written, a cgroup whose name is no text: ticks go on, and what was mended works."""
    chosen = options(tmp_path, build, journal=tmp_path / "journal")
    assert chosen.ready_file is not None
    chosen.ready_file.write_text("of a killed agent")
    in_the_way = tmp_path / "ready.new"
    in_the_way.mkdir()
    (chosen.cgroup_root / "cpuacct/kubepods/burstable" / os.fsdecode(b"pod\xff")).mkdir()

    async def main() -> str:
        with capture_logs() as logs:
            async with running(tmp_path, chosen) as agent:
                await eventually(lambda: agent.done() or any(entry.get("part") == "ready_file" for entry in logs))
                assert not agent.done() and not chosen.ready_file.exists()
                in_the_way.rmdir()
                await eventually(lambda: agent.done() or chosen.ready_file.exists())
                assert [entry["event"] for entry in logs].count("journal not written") == 1
                address = json.loads(chosen.ready_file.read_text())["http"]
                return await asyncio.to_thread(get, f"http://{address}/metrics")

    found = asyncio.run(main())
    assert 'sublet_agent_task_restarts_total{task="ready_file"} 0.0' not in found
    assert 'sublet_agent_task_restarts_total{task="pod_networks"} 0.0' in found
    assert 'sublet_agent_sink_failures_total{sink="journal"} 0.0' in found
    assert "sublet_agent_failed_ticks_total 0.0" in found


def test_ports_that_another_user_holds_end_nothing(tmp_path: Path, build: Any) -> None:
    """The agent limits, beats and answers probes; who holds a port is told of once, and it is served once it is free."""
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    http, grpc = (f"127.0.0.1:{holder.getsockname()[1]}" for holder in holders)
    chosen = options(tmp_path, build, http_listen=http, grpc_listen=grpc)
    (chosen.proc / "net").mkdir(exist_ok=True)
    (chosen.proc / "net/tcp").symlink_to("/proc/net/tcp")
    assert chosen.ready_file is not None
    quota = chosen.cgroup_root / "cpu/kubepods/besteffort/cpu.cfs_quota_us"
    probes = {page: [*PROBE, str(chosen.probe_socket), page] for page in ("healthz", "readyz")}

    async def main() -> tuple[str, list[Any]]:
        with capture_logs() as logs:
            async with running(tmp_path, chosen) as agent:
                await eventually(lambda: agent.done() or chosen.ready_file.exists())
                assert not agent.done()
                assert set(json.loads(chosen.ready_file.read_text())) == {"socket", "probes"}
                assert chosen.heartbeat.exists() and quota.read_text().strip() != "-1"
                for command in probes.values():
                    assert (await asyncio.to_thread(subprocess.run, command, capture_output=True)).returncode == 0
                for holder in holders:
                    holder.close()
                await eventually(lambda: agent.done() or sum("after all" in entry["event"] for entry in logs) == 2)
                assert not agent.done()
                return await asyncio.to_thread(get, f"http://{http}/metrics"), list(logs)

    metrics, logs = asyncio.run(main())
    told = {entry["port"]: entry["why"] for entry in logs if "cannot be listened on" in entry["event"]}
    user = f"a process of user {os.geteuid()} listens there"
    assert set(told) == {"http", "grpc"} and all(user in why for why in told.values())
    assert sum("cannot be listened on" in entry["event"] for entry in logs) == 2
    assert 'sublet_agent_listen_failures_total{port="http"} 0.0' not in metrics
    assert 'sublet_agent_task_restarts_total{task="listeners"} 0.0' in metrics


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return bytes(answer.read()).decode()


def test_observing_leaves_the_node_alone(tmp_path: Path, build: Any) -> None:
    """An agent that enforces may run beside: no lock is taken, no heartbeat told, the kernel is asked for no alarm.

    What an agent before this one limited is told of, and stays.
    """
    settings = tmp_path / "settings.yaml"
    settings.write_text("mode: observe\n")
    chosen = options(tmp_path, build, settings=settings, heartbeat=tmp_path / "run" / "agent.heartbeat")
    quota = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
    before = StateFile(chosen.state_file)
    before.remember({quota: "-1"})
    before.close()
    lock = NodeLock(chosen.cgroup_root / "cpu/kubepods/besteffort")
    control = chosen.cgroup_root / "memory/kubepods/besteffort/cgroup.event_control"
    control.touch()

    async def main() -> list[Any]:
        with capture_logs() as logs:
            async with running(tmp_path, chosen) as agent:
                await eventually(lambda: agent.done() or (chosen.ready_file and chosen.ready_file.exists()))
                assert not agent.done() and not chosen.heartbeat.exists() and control.read_text() == ""
            return list(logs)

    try:
        told = [entry for entry in asyncio.run(main()) if "stay in force" in entry["event"]]
    finally:
        lock.close()
    assert [(entry["control_files"], "--restore" in entry["fix"]) for entry in told] == [(1, True)]
    assert originals_in(chosen.state_file) == {quota: "-1"}


def test_a_socket_without_a_folder_is_one_line(tmp_path: Path, build: Any) -> None:
    """The flag, the path and the cause; nothing is left running."""
    (tmp_path / "file").touch()
    chosen = options(tmp_path, build, socket=tmp_path / "file" / "agent.sock")

    async def main() -> None:
        async with running(tmp_path, chosen) as agent:
            await eventually(agent.done)
            with pytest.raises(ConfigurationFault, match=r".*agent\.sock: its folder cannot be made: "):
                await agent

    asyncio.run(main())


class FleetApi:
    """An API server with a Node whose fleet's switch is turned; what is written to the Node's status is kept."""

    def __init__(self) -> None:
        self.mode = "observe"
        self.status: dict[str, Any] = {}
        self.version = 1
        self.moved = asyncio.Event()
        self.statuses: list[Any] = []

    def turn(self, mode: str) -> None:
        self.mode, self.version = mode, self.version + 1
        self.moved.set()

    @property
    def switch(self) -> dict[str, Any]:
        metadata = {"name": "fleet", "namespace": "s", "uid": "f", "resourceVersion": str(self.version)}
        return {"metadata": metadata, "data": {"mode": self.mode}}

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.method == "PATCH" and request.path == "/api/v1/nodes/n/status":
            self.statuses.append(await request.json())
        if "fieldSelector" not in request.query or request.method != "GET":
            return await answers(request)
        if request.query["fieldSelector"] == "metadata.name=fleet":
            if not request.query.get("watch"):
                return await says({"metadata": {"resourceVersion": str(self.version)}, "items": [self.switch]})(request)
            response = web.StreamResponse()
            await response.prepare(request)
            seen = int(request.query["resourceVersion"])
            while request.transport is not None and not request.transport.is_closing():
                if self.version > seen:
                    seen = self.version
                    event = {"type": "MODIFIED", "object": self.switch}
                    await response.write(json.dumps(event).encode() + b"\n")
                self.moved.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.moved.wait(), 0.05)
            return response
        if request.path == "/api/v1/nodes" and not request.query.get("watch"):
            node = {"metadata": {"name": "n", "uid": "u"}, "status": self.status}
            return await says({"metadata": {"resourceVersion": "1"}, "items": [node]})(request)
        return await answers(request)


def test_the_fleets_switch_turns_lending_on_and_off_in_one_process(tmp_path: Path, build: Any) -> None:
    """Observing, it touches no control file and says that its silence is meant; it enforces when told to, and before
    it observes again it tells the Node why nothing is offered. What it wrote stays."""
    (tmp_path / "settings.yaml").write_text("fleet: s/fleet\n")
    chosen = options(tmp_path, build, settings=tmp_path / "settings.yaml")
    quota = chosen.cgroup_root / "cpu/kubepods/besteffort/cpu.cfs_quota_us"
    before = quota.read_text()

    async def main() -> None:
        api, server = FleetApi(), ScriptedServer(tmp_path)
        server.answers = [api]
        client = await server.start()
        agent = asyncio.create_task(run(chosen))
        try:
            await eventually(lambda: agent.done() or last_beat(chosen.heartbeat) == 0)
            assert chosen.ready_file is not None
            await eventually(lambda: agent.done() or chosen.ready_file.exists())
            assert quota.read_text() == before and not api.statuses
            api.turn("lend")
            await eventually(lambda: agent.done() or (quota.read_text() != before and last_beat(chosen.heartbeat)))
            held = quota.read_text()
            known = {knob.file for knob in originals_in(chosen.state_file)}
            assert known >= {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"}, (
                "one that was never written is reset"
            )
            api.turn("observe")
            await eventually(lambda: agent.done() or last_beat(chosen.heartbeat) == 0)
            reasons = [c["reason"] for status in api.statuses for c in status["status"].get("conditions", ())]
            assert reasons[-1] == "Observing" and not agent.done()
            assert quota.read_text() == held
        finally:
            agent.cancel()
            await asyncio.gather(agent, return_exceptions=True)
            await client.close()
            await server.stop()

    asyncio.run(main())


def test_what_an_agent_before_still_offers_is_taken_back(tmp_path: Path, build: Any) -> None:
    """It crashed, and the switch was turned to observe before it came back; nothing is written to the kernel."""
    (tmp_path / "settings.yaml").write_text("fleet: s/fleet\n")
    chosen = options(tmp_path, build, settings=tmp_path / "settings.yaml")
    quota = chosen.cgroup_root / "cpu/kubepods/besteffort/cpu.cfs_quota_us"
    before = quota.read_text()

    async def main() -> None:
        api, server = FleetApi(), ScriptedServer(tmp_path)
        lent = {"cpu": "4", "memory": "8Gi", "kubernetes.io/batch-cpu": "3000"}
        told = {"type": "ColocationReady", "status": "True", "reason": "LendingActive"}
        api.status = {"capacity": lent, "allocatable": lent, "conditions": [told]}
        server.answers = [api]
        client = await server.start()
        agent = asyncio.create_task(run(chosen))
        try:
            await eventually(
                lambda: agent.done() or (api.statuses and chosen.ready_file and chosen.ready_file.exists())
            )
            status = api.statuses[0]["status"]
            assert status["allocatable"]["kubernetes.io/batch-cpu"] is None
            assert [c["reason"] for c in status["conditions"]] == ["Observing"] and quota.read_text() == before
        finally:
            agent.cancel()
            await asyncio.gather(agent, return_exceptions=True)
            await client.close()
            await server.stop()

    asyncio.run(main())


def test_the_plan_of_an_agent_before_holds_until_this_one_has_measured(tmp_path: Path, build: Any) -> None:
    """Nothing of the node can be measured, and online pods use a whole CPU: best effort is cut by what was left."""
    chosen = options(tmp_path, build)
    root = chosen.cgroup_root
    quota, used = root / "cpu/kubepods/besteffort/cpu.cfs_quota_us", root / "cpuacct/kubepods/cpuacct.usage"
    knob = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
    (chosen.proc / "stat").unlink()
    quota.write_text("150000")
    before = StateFile(chosen.state_file)
    before.remember({knob: "-1"})
    before.close()
    chosen.heartbeat.parent.mkdir(exist_ok=True)
    terms = (Term("capacity", 200_000), Term("margin", -60_000))
    Heartbeat(chosen.heartbeat).beat(BrakePlan(knob, terms, 140_000, 2000, 150_000, 10_000))

    async def main() -> None:
        async with running(tmp_path, chosen) as agent:
            # Unlike the kernel's, this file is empty for a moment while it is written.
            while not agent.done() and int(quota.read_text() or 150_000) > 100_000:
                used.write_text(str(time.monotonic_ns()))
                await asyncio.sleep(0.02)
            assert not agent.done()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert 2000 <= int(quota.read_text()) <= 100_000
