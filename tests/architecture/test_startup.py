"""What a program has loaded by when: each package costs every node memory, and a start on a full node CPU time.

Modules are counted, not seconds: a machine under load says nothing else.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from agent.options import AgentOptions
from tests.agent.conftest import Build
from tests.agent.run.test_wiring import answers, options
from tests.kube.conftest import ScriptedServer

AGENT = """
import atexit, json, sys
from pathlib import Path

class Log:
    "Each package that is looked for, and whether the agent has ticked by then: its heartbeat tells."
    early, late = set(), set()

    def find_spec(self, name, path=None, target=None):
        (self.late if heartbeat.exists() else self.early).add(name)

given = json.loads(sys.argv[1])
heartbeat, told = Path(given["heartbeat"]), Path(given["told"])
sys.meta_path.insert(0, Log())
atexit.register(lambda: told.write_text(json.dumps({"early": sorted(Log.early & sys.modules.keys()),
                                                    "late": sorted(sys.modules)})))
from cli.entry import run
sys.argv = ["sublet", "agent", *given["arguments"]]
run()
"""
BEFORE_THE_FIRST_TICK = {"msgspec", "structlog", "typing_extensions", "yaml", "_yaml"}
"""Packages of others that an agent may have loaded when it limits best effort for the first time."""
NEVER = (
    *("rich", "typer", "pydantic", "requests", "urllib3", "oauthlib", "websocket", "dateutil"),
    *("kubernetes.client", "kubernetes.config", "kubernetes.aio.client.models", "pyroute2.ndb", "pyroute2.ipdb"),
    *("numpy", "cryptography", "psutil", "sqlite3", "aiohttp.web"),
)
"""What an agent with a token has no use for."""


def arguments_of(chosen: AgentOptions) -> list[str]:
    named = {name: getattr(chosen, name) for name in AgentOptions.__struct_fields__}
    return [f"--{name.replace('_', '-')}={value}" for name, value in named.items() if value not in (None, "")]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The modules of an agent that ticked, was ready and was stopped: those it had before its first tick, and all."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "settings.yaml").write_text("mode: enforce\n")
    chosen = options(folder, Build(), settings=folder / "settings.yaml")
    told = folder / "told.json"
    given = {"heartbeat": str(chosen.heartbeat), "told": str(told), "arguments": arguments_of(chosen)}

    async def working() -> None:
        server = ScriptedServer(folder)
        server.answers = [answers]
        await (await server.start()).close()
        agent = subprocess.Popen([sys.executable, "-c", AGENT, json.dumps(given)])
        try:
            async with asyncio.timeout(60):
                while agent.poll() is None and not (chosen.ready_file and chosen.ready_file.exists()):
                    await asyncio.sleep(0.05)
            assert agent.poll() is None, f"the agent ended with {agent.returncode}"
            agent.send_signal(signal.SIGTERM)
            await asyncio.to_thread(agent.wait, 30)
        finally:
            agent.kill()
            agent.wait()
            await server.stop()

    asyncio.run(working())
    found: dict[str, list[str]] = json.loads(told.read_text())
    return found


def test_limits_come_before_everything_else(loaded: dict[str, list[str]]) -> None:
    """Neither gRPC, nor HTTP, nor netlink, nor Prometheus is loaded before the node's first tick."""
    packages = {name.partition(".")[0] for name in loaded["early"]} - sys.stdlib_module_names
    own = {"agent", "model", "kube", "cli"}
    assert {name for name in packages if not name.startswith("_")} - own <= BEFORE_THE_FIRST_TICK
    # With the standard library's servers and mail parsers it would be a half more.
    assert packages.isdisjoint({"wire"}) and not {"http.server", "email.message", "urllib.request"} & set(
        loaded["early"]
    )
    assert "agent.tick" in loaded["early"] and "agent.run.services" not in loaded["early"]


def test_what_is_needed_comes_after(loaded: dict[str, list[str]]) -> None:
    """The same agent talks to the API server, over gRPC and to Prometheus in the end."""
    assert {"grpc", "aiohttp", "kubernetes.aio.client.rest", "prometheus_client", "agent.run.services"} <= set(
        loaded["late"]
    )


@pytest.mark.parametrize("name", NEVER)
def test_never_loaded(loaded: dict[str, list[str]], name: str) -> None:
    """Not even once everything runs."""
    assert name not in loaded["late"]


PROGRAMS = {
    "scheduler": ("scheduler.__main__", NEVER[: NEVER.index("numpy")]),
    "link process": ("scheduler.link_process", (*NEVER, "scheduler.cycle", "scheduler.core.snapshot.snapshot")),
    "admission": (
        "admission.__main__",
        ("rich", "typer", "pydantic", "requests", "kubernetes.client", "numpy", "grpc"),
    ),
}


@pytest.mark.parametrize(("module", "never"), PROGRAMS.values(), ids=PROGRAMS)
def test_other_programs(module: str, never: tuple[str, ...]) -> None:
    """With the client of the API server, which each of them opens."""
    code = f"import {module}, kube.transport, sys; print(*(name for name in {never!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_arrays_need_no_threads() -> None:
    """OpenBLAS would start one for each CPU of the machine, and each holds memory."""
    code = "import scheduler.__main__, os; print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1\n"
