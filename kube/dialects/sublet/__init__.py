"""Sublet's own words, beside those of others for the same thing: eviction, preemption, the switch of the fleet."""
