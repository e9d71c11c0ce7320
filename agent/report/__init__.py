"""What is told of the agent and of its node: decisions, metrics, journal lines, patches of the Node."""
