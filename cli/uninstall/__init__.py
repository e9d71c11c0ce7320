"""`sublet uninstall`: the command, its steps, and the patches they need."""
