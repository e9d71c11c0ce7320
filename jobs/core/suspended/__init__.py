"""What is to be done for jobs that wait whole."""
