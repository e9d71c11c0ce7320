"""The service network of the embedded cluster: whoever connects to a Service's address reaches one of its pods.

    informers → routes (pure) → fronts (sockets)

Addresses of Services and pods are loopback addresses of one machine, so passing the bytes on is all there is to do.
"""
