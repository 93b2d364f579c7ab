"""Round trip: what is saved is what was trained, what is resumed goes on, and the best is the best."""
