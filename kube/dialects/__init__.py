"""Other people's words for things, translated into the model; pure, one dialect a module."""
