"""Jobs that wait whole, of any kind, and Kueue's Workload: read into the model, and written."""
