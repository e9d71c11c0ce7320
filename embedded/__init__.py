"""A Kubernetes cluster on one machine, for trying and for tests: an API server, a node, a Service proxy."""
