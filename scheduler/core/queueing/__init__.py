"""What waits, in which order, for what, and the room reserved for the head of a queue."""
