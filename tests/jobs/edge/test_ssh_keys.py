"""Pairs of keys that ssh takes."""

from __future__ import annotations

import re

from jobs.edge.ssh_keys import key_pair


def test_a_pair() -> None:
    """Never the same twice."""
    pair = key_pair()
    assert pair["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert re.fullmatch(r"ssh-rsa [A-Za-z0-9+/=]+\n", pair["id_rsa.pub"]) and key_pair() != pair
