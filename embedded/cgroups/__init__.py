"""Control groups of this machine: names, control files, making and removing, who owns them."""
