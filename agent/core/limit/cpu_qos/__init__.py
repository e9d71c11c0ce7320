"""CPU QoS and clamps: which pods have one and which control files it needs (`wishes`), what these shall hold
(`values`), and the weights of batch pods that are idle (`idle_weights`)."""
