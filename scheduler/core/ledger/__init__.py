"""The ledger: who uses which amounts of which node, and of which queue."""
