"""What the command line of simulated nodes accepts; everything else is one line that names the flag."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.simnodes.__main__ import main
from local.simnodes.settings import Simulation, parse_labels, parse_pools, with_resources

KUBECONFIG = ["--kubeconfig", "/nope"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--count", "0"], "--count 0"),
        (["--count", "20001"], "1 to 20000"),
        (["--count", "1", "--prefix", "Sim"], "--prefix 'Sim'"),
        (["--count", "1", "--cpu", "many"], "--cpu many"),
        (["--count", "1", "--memory", "0"], "--memory 0"),
        (["--count", "1", "--labels", "a"], "'a' is not KEY=VALUE"),
        (["--count", "1", "--time-factor", "0"], "--time-factor 0"),
        (["--count", "1", "--resource", "gpu"], "--resource gpu: is not NAME=QUANTITY"),
        (["--count", "1", "--resource", "gpu=8"], "--resource gpu=8: is no resource of a node"),
        (["--count", "1", "--resource", "nvidia.com/gpu=some"], "'some' is not a quantity"),
        (["--count", "1", "--resource", "nvidia.com/gpu=0.5"], "is not a whole number"),
        (["--count", "1", "--resource", "nvidia.com/gpu=-1"], "a node needs more than nothing"),
        (["--count", "1", "--resource", "kubernetes.io/batch-cpu=1"], "is computed from what the nodes use"),
        (["--count", "1", "--label", "pool"], "--label pool: is not KEY=VALUE"),
        (["--count", "1", "--label", "pool=a b"], "--label pool=a b: is not KEY=VALUE"),
        (["--count", "1", "--trace", "/nope"], "--trace /nope"),
        (["--count", "1"], "/nope: no such file"),
    ],
)
def test_a_wrong_flag_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And exit code 1."""
    assert main([*KUBECONFIG, *arguments]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ") and told.count("\n") == 1 and words in told


def test_where_nodes_stand() -> None:
    """Forty to a rack, ten racks to a zone; own labels come on top."""
    simulation = Simulation(1000, labels={"pool": "batch"})
    found = simulation.labels_of(401)
    assert found["topology.sublet.dev/rack"] == "rack-10"
    assert found["topology.kubernetes.io/zone"] == "zone-1"
    assert found["pool"] == "batch"


def test_labels() -> None:
    """A value may be empty, and there may be none at all."""
    assert parse_labels("a=b,c=") == {"a": "b", "c": ""} and parse_labels("") == {}


def test_pools() -> None:
    """Nodes get the values of a label in turn; one value is everybody's."""
    simulation = Simulation(3, pools=parse_pools(("pool=a100,v100", "nvidia.com/gpu.product=NVIDIA-A100")))
    found = [simulation.labels_of(index) for index in range(3)]
    assert [labels["pool"] for labels in found] == ["a100", "v100", "a100"]
    assert {labels["nvidia.com/gpu.product"] for labels in found} == {"NVIDIA-A100"}


def test_resources() -> None:
    """CPU and memory are the size of a node, what else is named comes on top or in the place of what is usual."""
    found = with_resources(Simulation(1), ("nvidia.com/gpu=8", "cpu=96", "memory=1Ti", "pods=250"))
    assert (found.cpu_millis, found.memory_bytes) == (96_000, 1 << 40)
    expected = {"cpu": "96", "memory": f"{1 << 30}Ki", "pods": "250", "nvidia.com/gpu": "8"}
    assert expected.items() <= found.amounts.items()


def test_the_trace_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before a server is asked for anything."""
    file = tmp_path / "t.csv"
    file.write_text("machine,t_s\n")
    assert main([*KUBECONFIG, "--count", "1", "--trace", str(file)]) == 1
    assert "column cpu_pct is missing" in capsys.readouterr().err
