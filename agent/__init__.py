"""The node agent: reads cgroups, computes what may be lent, publishes it, and takes it back at once."""
