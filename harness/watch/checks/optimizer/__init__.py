"""Optimizer: one for the whole training, and it holds what the model trains."""
