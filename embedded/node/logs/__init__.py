"""Container logs: kept, read, and served with statistics."""
