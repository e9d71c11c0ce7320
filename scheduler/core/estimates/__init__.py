"""When waiting work will start: past run times, and a forward pass over the expected ends of what runs."""
