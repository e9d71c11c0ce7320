"""May they: RBAC, and the rules for nodes."""
