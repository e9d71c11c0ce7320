"""Memory QoS: which pods have one and which control files it needs (`wishes`), what these shall hold (`values`), and
the scores by which the kernel kills (`oom_scores`)."""
