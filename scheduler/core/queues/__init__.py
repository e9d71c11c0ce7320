"""Queues: their tree, shares, headroom, loans and rules; who may have how much, and who may take it back."""
