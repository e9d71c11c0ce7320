"""Coverage of Koordinator's API: one table (`table`), and which of its rows an object asks for (`asking_*`)."""
