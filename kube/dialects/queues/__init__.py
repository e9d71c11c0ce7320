"""Queues: ours, Volcano's and Koordinator's, what each says of itself, and who names which of them."""
