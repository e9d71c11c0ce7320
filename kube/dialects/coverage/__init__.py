"""How far Koordinator's API is acted on: one table (`table`), and which of its rows an object asks for (`asking_*`)."""
