"""Metrics: computed from every row of the evaluation, aligned, and from what the model said."""
