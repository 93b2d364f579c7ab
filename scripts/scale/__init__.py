"""What watching costs as work grows."""
