"""What earlier runs measured: stored with their provenance, and compared with new ones. Reads records, runs nothing."""
