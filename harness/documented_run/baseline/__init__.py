"""Baselines of the documented run: recorded seeds, their curves, and what a new run is compared by."""
