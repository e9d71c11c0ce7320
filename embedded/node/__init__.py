"""A kubelet whose containers are processes of this machine; the API server and the HTTPS server are ports (`ports`).

There is little isolation but cgroups: a container without an image of its own sees the machine's file system (with its
volumes in their places, in a mount namespace of its own), network and process table, and runs as the user of the node.
"""
