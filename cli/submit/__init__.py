"""`sublet submit`: a TrainingJob made of a file or of a command, and followed to its end."""
