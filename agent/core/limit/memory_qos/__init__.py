"""Memory QoS: which pods have one and which control files it needs (`wishes`), and what these shall hold (`values`)."""
