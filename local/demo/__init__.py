"""The demonstration: the same load and the same batch work, three times, on this machine's own cgroups."""
