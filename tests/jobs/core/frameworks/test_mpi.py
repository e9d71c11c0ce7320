"""The host file of MPI, and where launchers look for it."""

from __future__ import annotations

from peer_cases import HOSTS, PEERS

from jobs.core.frameworks.mpi import FILE, FOLDER, environment, host_file
from jobs.core.peers import Peers
from model.job.job import Member

LAUNCHER, WORKER = Member("launcher", 0), Member("worker", 0)


def test_a_line_for_each_pod_with_processes() -> None:
    assert host_file(PEERS) == "".join(f"{host} slots=8\n" for host in HOSTS)
    assert host_file(Peers("train", (LAUNCHER, WORKER), slots=2)) == "train-worker-0.train slots=2\n"
    assert host_file(Peers("train", (LAUNCHER,))) == "train-launcher-0.train slots=1\n"


def test_launchers_find_it() -> None:
    told = environment(PEERS, PEERS.members[0])
    for name in ("OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"):
        assert told[name] == f"{FOLDER}/{FILE}"
