"""The process node: a small kubelet whose containers are plain processes in real cgroups of this machine.

    settings → layout, resources, admission, environment, images, restarts, status   what is right (pure)
    cgroups, ownership, processes, logs                                              this machine
    registration, reporting, api                                                     the API server
    runner (one container) → worker (one pod) → kubelet (all pods) → wiring          putting it together

There is no isolation but cgroups: every container sees the machine's file system, network and process table and
runs as the user of the node. `securityContext` and probes are ignored: a container is ready while it runs.
"""
