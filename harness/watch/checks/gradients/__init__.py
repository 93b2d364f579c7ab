"""Gradients: at each update they are those of its own backward passes, all of them, in their own scale."""
