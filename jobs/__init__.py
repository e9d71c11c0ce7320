"""Jobs: what users write to have several pods run as one piece of work; run by the scheduler's leader."""
