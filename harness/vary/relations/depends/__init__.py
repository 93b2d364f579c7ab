"""A run depends on something that must not matter."""
