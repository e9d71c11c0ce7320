"""kube-scheduler's filters, each one answer for all nodes at once."""
