"""The small controllers: endpoints, budgets, garbage, nodes, service accounts, volumes."""
