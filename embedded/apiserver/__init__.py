"""Embedded Kubernetes API server: enough of the API for the official clients and kubectl on one machine.

Not a production store: objects live in memory. The core (`http/router.py` and everything below it) knows nothing of
sockets; `http/server.py` is the only file that speaks HTTP.
"""
