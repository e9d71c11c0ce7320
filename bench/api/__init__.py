"""The embedded API server's speed."""
