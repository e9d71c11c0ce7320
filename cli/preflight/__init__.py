"""`sublet preflight`: the command, and the questions to the API server."""
