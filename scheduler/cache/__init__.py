"""The scheduler's cache of its cluster: pods, nodes, gangs, loads, offers and refusals, fact by fact."""
