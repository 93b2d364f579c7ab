"""A run does not depend on something that must matter."""
