"""What a run found, in words: made from findings and run records, never from a run itself."""
