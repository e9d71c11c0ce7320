"""One request in, one answer out: the verbs on resources, and the subresources."""
