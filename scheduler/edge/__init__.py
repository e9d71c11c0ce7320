"""One technology a module: Kubernetes, the link to agents, diagnostics, metrics."""
