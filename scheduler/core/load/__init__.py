"""Load-aware placement: what nodes really use, and what they are about to use."""
