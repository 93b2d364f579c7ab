"""What may be wrong with a setting."""
