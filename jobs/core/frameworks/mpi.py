"""MPI: a host file with slots, in a ConfigMap that all pods mount, and where the common launchers look for it.

Source: Open MPI (orte_default_hostfile), MPICH Hydra (HYDRA_HOST_FILE), Intel MPI (I_MPI_HYDRA_HOST_FILE); Kubeflow
mpi-operator pkg/controller/mpi_job_controller.go.
"""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

FOLDER, FILE = "/etc/mpi", "hostfile"
LAUNCHER = "launcher"


def environment(peers: Peers, member: Member) -> dict[str, str]:
    """Ranks are given by mpirun, not by us."""
    file = f"{FOLDER}/{FILE}"
    return {
        "OMPI_MCA_orte_default_hostfile": file,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_default_hostfile": file,
        "HYDRA_HOST_FILE": file,
        "I_MPI_HYDRA_HOST_FILE": file,
        "OMPI_MCA_orte_set_default_slots": str(peers.slots),
    }


def host_file(peers: Peers) -> str:
    """One line a pod that runs processes: all but the launcher where it is a set of its own."""
    workers = [each for each in peers.members if each.task != LAUNCHER] or list(peers.members)
    return "".join(f"{peers.host(each)} slots={peers.slots}\n" for each in workers)
