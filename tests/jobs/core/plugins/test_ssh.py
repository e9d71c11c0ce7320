"""The keys of a job as ssh finds them."""

from __future__ import annotations

from peer_cases import PEERS

from jobs.core.plugins.ssh import config, mount, secret_name, volume


def test_the_configuration_knows_every_host() -> None:
    lines = config(PEERS, {}).splitlines()
    assert lines[:2] == ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    assert lines[2:4] == ["Host train-master-0", "  HostName train-master-0.train"] and len(lines) == 8
    assert "Port 2222" in config(PEERS, {"ssh-port": "2222"}).splitlines()
    assert "Port" not in config(PEERS, {"ssh-port": "no"})


def test_files_that_ssh_accepts() -> None:
    told = volume("train")
    assert told["secret"]["defaultMode"] == 0o600 and told["name"] == secret_name("train") == "train-ssh"
    assert {each["path"]: each["key"] for each in told["secret"]["items"]} == {
        "id_rsa": "id_rsa", "id_rsa.pub": "id_rsa.pub", "authorized_keys": "id_rsa.pub", "config": "config",
    }  # fmt: skip
    assert mount("train", {})["mountPath"] == "/root/.ssh"
    assert mount("train", {"ssh-key-file-path": "/home/.ssh"})["mountPath"] == "/home/.ssh"
