"""A pod in parts: what identifies it, what it asks for, how far it has come, and what Koordinator says of it."""
