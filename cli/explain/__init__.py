"""`sublet explain`: the command, the text of its answers, and what the API server says of a node."""
