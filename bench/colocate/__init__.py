"""A service beside batch work, with and without agents."""
