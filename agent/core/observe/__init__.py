"""What a node is doing: kernel files read as numbers, use over windows, predicted peaks, its NodeMetric."""
