"""Controllers of the leader: each a pure plan, and what carries it out by kube.reconcile, which they share."""
