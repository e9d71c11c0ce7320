"""Reports of the agent about itself and its node: decisions, metrics, journal lines, patches of the Node."""
