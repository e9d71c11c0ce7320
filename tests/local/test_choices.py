"""What a person may choose, and which kernel that gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from embedded.node.settings import Kernel
from local.choices import Choices, ids_of, usable_kernel
from model.fault import ConfigurationFault, KernelFault


@pytest.mark.parametrize(
    ("chosen", "flag"),
    [
        ({"process_nodes": 5}, "--process-nodes"),
        ({"trace": Path("x")}, "--trace"),
        ({"simulated_resources": ("nvidia.com/gpu=8",)}, "--resource"),
        ({"simulated_labels": ("pool=a",)}, "--label"),
        ({"simulated_nodes": 1, "simulated_resources": ("gpu=8",)}, "--resource gpu=8"),
        ({"simulated_nodes": 1, "simulated_labels": ("pool",)}, "--label pool"),
        ({"listen": "6443"}, "--listen"),
        ({"join": Path("x"), "state_dir": Path("y")}, "--join"),
        ({"join": Path("x"), "audit_log": Path("y")}, "--join"),
        ({"join": Path("x"), "listen": "127.0.0.1:6443"}, "--join"),
        ({"apiserver": Path("x"), "join": Path("y")}, "--apiserver"),
        ({"apiserver": Path("x"), "state_dir": Path("y")}, "--apiserver"),
        ({"apiserver": Path("x"), "audit_log": Path("y")}, "--apiserver"),
        ({"listen": "127.0.0.1:x"}, "--listen"),
        ({"listen": "127.0.0.1:65536"}, "--listen"),
    ],
)
def test_refused(chosen: dict[str, Any], flag: str) -> None:
    """By the flag's name."""
    with pytest.raises(ConfigurationFault, match=flag):
        Choices("n", "abc", **chosen)


def test_slots() -> None:
    """One node has the plain names; several are numbered, and their ids are found again by the cluster's."""
    (only,) = Choices("n", "abc").slots
    assert (only.name, only.id, only.suffix) == ("n", "abc", "")
    slots = Choices("n", "abc", process_nodes=3).slots
    assert [(slot.name, slot.id, slot.suffix) for slot in slots][1] == ("n-2", "abc-2", "-2")
    assert {slot.id for slot in slots} < set(ids_of("abc"))
    assert Choices("n", "abc", process_nodes=0).slots == ()


def test_every_cluster_has_an_id_of_its_own() -> None:
    """Two may run side by side."""
    assert Choices().id != Choices().id and Choices().node_name


@pytest.mark.parametrize(
    ("listen", "name"), [("10.1.2.3:6443", "10.1.2.3"), ("[fd00::1]:0", "fd00::1"), ("127.0.0.1:0", "127.0.0.1")]
)
def test_the_certificate_is_good_for_what_is_listened_on(listen: str, name: str) -> None:
    """And for loopback, where kubectl on this machine calls."""
    names = Choices("n", "abc", listen=listen).server_names
    assert {name, "localhost", "n"} <= set(names) and len(set(names)) == len(names)


def test_a_kernel_that_cannot_be_used(tmp_path: Path) -> None:
    """The best there is takes a simulated one and says why; who insists is told what is missing."""
    kernel, why = usable_kernel(None, "sublet up", tmp_path)
    assert kernel is Kernel.SIMULATED and str(tmp_path) in why
    with pytest.raises(KernelFault, match="needs root and writable cgroups"):
        usable_kernel(Kernel.REAL, "sublet up", tmp_path)
    assert usable_kernel(Kernel.SIMULATED, "sublet up", tmp_path) == (Kernel.SIMULATED, "")


@pytest.mark.kernel
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_the_real_kernel_is_tried_and_left_as_it_was() -> None:
    """What it made to see whether it may is gone."""
    if usable_kernel(None, "sublet up") != (Kernel.REAL, ""):
        pytest.skip("needs writable cgroups")
    root = Path("/sys/fs/cgroup")
    assert [*root.glob("sublet-probe-*"), *root.glob("*/sublet-probe-*")] == []
