"""What a script can lose where it is killed: one file a loss."""
