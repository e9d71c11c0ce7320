"""`sublet replay`: the command and its charts."""
