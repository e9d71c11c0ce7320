"""Files the agent keeps or reads again and again: control files, originals, locks."""
