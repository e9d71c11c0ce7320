"""What best effort may use: a limit for each control file, in the order in which they are written."""
