"""The process node: a small kubelet whose containers are plain processes in real cgroups of this machine.

    settings → layout, resources, admission, environment, sources, images, restarts, status,
               probes, pressure                                                      what is right (pure)
    cgroups, ownership, entry, mountspace, mounting, volumes, containerprocess,
    processes, logs                                                                  this machine
    registration, reporting, api                                                     the API server
    logserver, logreading, stats                                                     what others may ask
    handlers → probing, termination → runner (one container) → worker (one pod) → kubelet (all pods),
    housekeeping (the node itself) → wiring                                          putting it together

There is little isolation but cgroups: every container sees the machine's file system (with its volumes in their
places, in a mount namespace of its own), network and process table, and runs as the user of the node.
`securityContext` is ignored.
"""
