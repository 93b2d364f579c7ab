"""Ranks: as many processes as were asked for, each with rows of its own, and all with the same weights."""
