"""Weights: what comes from the checkpoint is there, and a state that is loaded is loaded somewhere."""
