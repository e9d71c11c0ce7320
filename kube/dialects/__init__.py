"""Other people's words for things, translated into the model; pure, a folder for each that speaks."""
