"""Images as directories of this machine, and what of them a container runs, as whom."""
