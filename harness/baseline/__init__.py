"""What earlier runs measured: stored with their provenance, and compared with new ones. Only ``sessions`` trains."""
