"""The agent's edges: one technology a module, no thresholds, no rules about resources."""
