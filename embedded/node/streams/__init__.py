"""What leads into running pods: exec, attach and port-forward, over websockets and SPDY/3.1 as kubectl speaks them."""
