"""Pure decisions of the admission program."""
