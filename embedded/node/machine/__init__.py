"""What this machine is, and how it is divided into nodes."""
