"""Our Node: made, kept alive, made ready and unready."""
