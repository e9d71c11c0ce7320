"""The life of pods: admission, workers, runners, probes, status, eviction."""
