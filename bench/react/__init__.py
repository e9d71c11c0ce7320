"""How soon the agent acts, also after it was killed."""
