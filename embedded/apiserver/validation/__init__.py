"""What is wrong with an object, kind by kind."""
