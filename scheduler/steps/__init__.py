"""The steps of a turn: each decides one thing and returns its part of a Turn."""
