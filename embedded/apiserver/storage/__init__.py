"""Objects at rest: encoded, with a log of events for each type, and on the disk."""
