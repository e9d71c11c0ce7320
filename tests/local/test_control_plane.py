"""The programs of a real control plane: found, started in their order with a token file, and told what nobody does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from local.accounts import users
from local.certificates import LocalAuthority
from local.choices import Choices
from local.control_plane import Binaries, find_binaries, taints_of_ready
from model.fault import ConfigurationFault


def programs(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_folder_or_the_program(tmp_path: Path) -> None:
    """What lies beside kube-apiserver goes before what is on $PATH."""
    here, elsewhere = programs(tmp_path / "here", "kube-apiserver"), programs(tmp_path / "elsewhere", "etcd")
    wanted = Binaries(here / "kube-apiserver", elsewhere / "etcd")
    assert find_binaries(here, str(elsewhere)) == find_binaries(here / "kube-apiserver", str(elsewhere)) == wanted
    programs(here, "etcd", "kube-controller-manager")
    whole = Binaries(here / "kube-apiserver", here / "etcd", here / "kube-controller-manager")
    assert find_binaries(here, str(elsewhere)) == whole


@pytest.mark.parametrize(
    ("names", "told"),
    [([], "kube-apiserver is no program"), (["kube-apiserver"], "no etcd in")],
    ids=["nothing there", "no etcd"],
)
def test_what_is_missing(tmp_path: Path, names: list[str], told: str) -> None:
    """Is told with the place where it was looked for."""
    place = programs(tmp_path / "here", *names)
    with pytest.raises(ConfigurationFault, match=f"--apiserver {place}: .*{told}"):
        find_binaries(place, os.devnull)


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "mine", "effect": "NoSchedule"}
NODES: dict[str, tuple[list[Any], str, list[Any] | None]] = {
    "ready and tainted": ([NOT_READY], "True", []),
    "others' taints stay": ([OTHER, NOT_READY], "True", [OTHER]),
    "not ready": ([NOT_READY], "False", None),
    "free of it": ([OTHER], "True", None),
}


@pytest.mark.parametrize(("taints", "ready", "kept"), NODES.values(), ids=NODES)
def test_a_node_that_became_ready(taints: list[Any], ready: str, kept: list[Any] | None) -> None:
    """Loses the taint of one that is not, which nobody else takes from it without a controller manager."""
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    assert taints_of_ready({"spec": {"taints": taints}, "status": status}) == kept


def test_a_node_that_says_nothing_yet() -> None:
    assert taints_of_ready({"spec": {"taints": [NOT_READY]}}) is None


@pytest.mark.parametrize("bare", [False, True])
def test_the_controller_manager_is_a_user(bare: bool) -> None:
    """Of Kubernetes' own name, to which its role is bound; on the embedded server there is none."""
    real, own = users(Choices("n", "abc", apiserver=Path("x"), bare=bare)), users(Choices("n", "abc", bare=bare))
    assert real["controller-manager"].name == "system:kube-controller-manager"
    assert real.keys() - own.keys() == {"controller-manager"}


def test_a_client_certificate() -> None:
    """Is for clients, names its user, and is signed by the authority."""
    authority = LocalAuthority("a")
    made = x509.load_pem_x509_certificate(authority.issue_client("anne")[0])
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))
    assert [each.value for each in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["anne"]
    use = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(use) == [ExtendedKeyUsageOID.CLIENT_AUTH]
