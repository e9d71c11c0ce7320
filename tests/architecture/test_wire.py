"""The generated code is what the contract generates today."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROTOS = sorted(path.relative_to(ROOT / "proto") for path in (ROOT / "proto").glob("wire/v1/*.proto"))


def test_wire_is_generated_from_proto(tmp_path: Path) -> None:
    """`make proto` changes nothing, and wire/v1 holds nothing else."""
    pytest.importorskip("grpc_tools", reason="grpcio-tools is a development dependency: make test installs it")
    out = [f"--{kind}={tmp_path}" for kind in ("python_out", "pyi_out", "grpc_python_out")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-Iproto", *out, *(f"proto/{path}" for path in PROTOS)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=100)
    fresh = {path.name: path.read_text() for path in (tmp_path / "wire/v1").iterdir()}
    committed = {p.name: p.read_text() for p in (ROOT / "wire/v1").iterdir() if p.is_file() and p.name != "__init__.py"}
    assert committed.keys() == fresh.keys()
    assert [name for name in fresh if fresh[name] != committed[name]] == [], "run `make proto`"
