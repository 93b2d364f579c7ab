"""The documented run: the recipe of "A full training", its stages and loops, its documents, and its baselines."""
